-- Starting, signalling and cancelling inside a caller's own transaction: from the library ({ tx }), and from any language as
-- {schema}.start, {schema}.signal and {schema}.cancel. They only insert and notify. They lock no run, and wait for a key that
-- another open transaction is inserting under the caller's own lock_timeout. Workers hear of it when the caller commits.
--
-- What start, signal and cancel take and answer is public: docs/transactions.md.

-- Creates runs as create_runs does, without its lock_timeout. Answers one text, which every driver gives as it is: an array of
-- what create_runs answers.
create function {schema}.create_in_transaction_v1(p_shard smallint, p_runs json)
returns text
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  return (select coalesce(json_agg(json_build_object('run_id', c.run_id, 'outcome', c.outcome, 'owner_id', c.owner_id)), '[]')
            from {schema}.start_runs_v1(p_shard, p_runs, true, json_array_length(p_runs) > 1, null, null) c);
end
$$;

-- A new id, made as core/ids.ts does: 48 bits of ms, 12 bits of the time within the ms, 10 bits of shard, 52 random bits.
create function {schema}.new_id_v1(p_shard smallint)
returns uuid
language plpgsql
as $$
declare
  v_us bigint := floor(extract(epoch from {clock}) * 1000000);
  v_random text := replace(gen_random_uuid()::text, '-', '');
begin
  return lpad(to_hex(v_us / 1000), 12, '0')
    || to_hex(28672 | ((v_us % 1000) * 4096 / 1000)::integer)
    || to_hex(32768 | (p_shard::integer << 4) | ('x' || left(v_random, 1))::bit(4)::integer)
    || right(v_random, 12);
end
$$;

-- The shard whose tables hold this run.
create function {schema}.shard_of_v1(p_id uuid)
returns smallint
language plpgsql immutable
as $$
begin
  return (('x' || substr(p_id::text, 20, 4))::bit(16)::integer >> 4) & 1023;
end
$$;

-- Refuses a name that the library would refuse.
create function {schema}.check_name_v1(p_what text, p_name text)
returns void
language plpgsql
as $$
begin
  if p_name is null or p_name = '' then
    raise exception 'A %''s name must not be empty.', p_what using errcode = 'PW003', detail = 'INVALID_NAME';
  end if;
  if octet_length(convert_to(p_name, 'UTF8')) > 255 then
    raise exception 'A %''s name must not be longer than 255 bytes.', p_what using errcode = 'PW003', detail = 'INVALID_NAME';
  end if;
end
$$;

-- Refuses a value that the library would refuse: too large, too deep, or with what no JavaScript program could have sent.
create function {schema}.check_payload_v1(p_what text, p_value json)
returns void
language plpgsql
as $$
declare
  v_shape text;
begin
  if octet_length(p_value::text) > 1048576 then
    raise exception '%: the value is larger than 1048576 bytes: keep it elsewhere and store where.', p_what
      using errcode = 'PW004', detail = 'INVALID_PAYLOAD';
  end if;

  begin
    perform p_value::jsonb;
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    raise exception '%: the value cannot be read back as it is: %.', p_what, sqlerrm
      using errcode = 'PW004', detail = 'INVALID_PAYLOAD';
  end;

  -- Only its brackets: each turn takes away the innermost ones.
  v_shape := regexp_replace(regexp_replace(p_value::text, '"(?:[^"\\]|\\.)*"', '', 'g'), '[^][{}]+', '', 'g');
  if length(v_shape) > 200 then
    for v_level in 1 .. 100 loop
      v_shape := regexp_replace(v_shape, '\[\]|\{\}', '', 'g');
      exit when v_shape = '';
    end loop;
    if v_shape <> '' then
      raise exception '%: the value lies deeper than 100 levels.', p_what using errcode = 'PW004', detail = 'INVALID_PAYLOAD';
    end if;
  end if;
end
$$;

-- An instant in ms, as the library gives it. Refuses one that its dates cannot name.
create function {schema}.instant_ms_v1(p_option text, p_at timestamptz)
returns float8
language plpgsql
as $$
begin
  if not isfinite(p_at) or p_at > '275760-09-13 00:00:00+00' then
    raise exception 'The option "%" of start lies beyond the end of the calendar.', p_option
      using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;
  return ceil(extract(epoch from p_at) * 1000);
end
$$;

-- Refuses what a start would be refused for by the library.
create function {schema}.check_start_v1(
  p_workflow text, p_input json, p_version integer, p_key text, p_queue text, p_tags text[])
returns void
language plpgsql
as $$
begin
  perform {schema}.check_name_v1('workflow', p_workflow);
  perform {schema}.check_name_v1('queue', coalesce(p_queue, 'default'));
  if p_key is not null then
    perform {schema}.check_name_v1('key', p_key);
  end if;
  perform {schema}.check_name_v1('tag', t.tag) from unnest(p_tags) t (tag);
  perform {schema}.check_payload_v1('The input of ' || p_workflow, p_input);
  if p_version < 1 then
    raise exception 'The option "version" of start must be from 1 to 2147483647.' using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;
end
$$;

-- A run as put_runs reads it. Its input is parsed by its first holder.
create function {schema}.new_run_v1(
  p_id uuid, p_workflow text, p_input json, p_version integer, p_key text, p_queue text, p_priority integer,
  p_start_at timestamptz, p_expires_at timestamptz, p_deadline_at timestamptz, p_tags text[])
returns json
language plpgsql
as $$
begin
  return json_strip_nulls(json_build_object(
    'id', p_id, 'workflow', p_workflow, 'version', coalesce(p_version, 1),
    'queue', coalesce(p_queue, 'default'), 'priority', coalesce(p_priority, 0),
    'input', p_input::text, 'key', p_key, 'tags', to_json(p_tags), 'raw', true,
    'start_ms', {schema}.instant_ms_v1('start_at', p_start_at),
    'expires_ms', {schema}.instant_ms_v1('expires_at', p_expires_at),
    'deadline_ms', {schema}.instant_ms_v1('deadline_at', p_deadline_at)));
end
$$;

-- Public. Starts a run and answers its id, or that of the run that has the key. The input is parsed by the workflow's schema
-- when a worker first claims the run (raw). What is null is as if it were left out.
create function {schema}.start(
  workflow text, input json default null, version integer default 1, key text default null,
  queue text default 'default', priority integer default 0, start_at timestamptz default null,
  expires_at timestamptz default null, deadline_at timestamptz default null, tags text[] default null,
  on_conflict text default 'return')
returns uuid
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_shard constant smallint := 0;
  v_id uuid := {schema}.new_id_v1(v_shard);
  v_outcome text;
  v_owner uuid;
begin
  perform {schema}.check_start_v1(start.workflow, start.input, start.version, start.key, start.queue, start.tags);
  if start.on_conflict not in ('return', 'reject') then
    raise exception 'The option "on_conflict" of start must be ''return'' or ''reject''.' using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;
  if start.on_conflict = 'reject' and start.key is null then
    raise exception 'The option "on_conflict" of start needs a key.' using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;

  select c.outcome, c.owner_id into v_outcome, v_owner
    from {schema}.start_runs_v1(v_shard, json_build_array({schema}.new_run_v1(v_id, start.workflow, start.input, start.version,
           start.key, start.queue, start.priority, start.start_at, start.expires_at, start.deadline_at, start.tags)),
           start.key is not null, false, null, null) c;

  if v_owner is null or v_owner = v_id then
    return v_id;
  end if;
  if v_outcome = 'existing' and start.on_conflict is distinct from 'reject' then
    return v_owner;
  end if;
  raise exception 'The key "%" belongs to run %.', start.key,
      v_owner || case v_outcome when 'existing' then '' else ', which has another workflow, version or input' end
    using errcode = 'PW002', detail = 'KEY_CONFLICT';
end
$$;

-- Public. Sends a signal. Answers 'accepted', 'duplicate' (its idempotency key was used before), 'ended' or 'missing'.
create function {schema}.signal(run uuid, name text, payload json default null, idempotency_key text default null)
returns text
language plpgsql
set search_path = pg_catalog
as $$
begin
  perform {schema}.check_name_v1('signal', signal.name);
  if signal.idempotency_key is not null then
    perform {schema}.check_name_v1('idempotency key', signal.idempotency_key);
  end if;
  perform {schema}.check_payload_v1('The signal "' || signal.name || '"', signal.payload);
  return {schema}.tell_in_transaction_v1({schema}.shard_of_v1(signal.run), {schema}.new_id_v1({schema}.shard_of_v1(signal.run)),
    signal.run, 'signal:' || signal.name, signal.payload::text, null, signal.idempotency_key);
end
$$;

-- Public. Asks a run to stop. Answers 'accepted', 'ended' or 'missing'.
create function {schema}.cancel(run uuid, reason text default null)
returns text
language plpgsql
set search_path = pg_catalog
as $$
declare
  v_data json := json_build_object('reason', cancel.reason);
begin
  perform {schema}.check_payload_v1('The reason', v_data);
  return {schema}.tell_in_transaction_v1({schema}.shard_of_v1(cancel.run), {schema}.new_id_v1({schema}.shard_of_v1(cancel.run)),
    cancel.run, 'cancel', v_data::text, null, null);
end
$$;
