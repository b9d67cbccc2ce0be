-- Signalling the run that has a key, or starting it with the signal in its inbox: one transition, so that of two at once one
-- starts the run and both are heard.

-- Finds the run that has the key of p_run, or creates p_run. Answers 'found', 'created', 'conflict' (the key belongs to another
-- workflow) or 'elsewhere' (nothing was done, since the signal was written for p_bound_to and would go to this other run), and
-- the run. Another version or input is no conflict: the run that is there is the one to be told.
-- Locks: the key, if it inserts it; waits for one that another open transaction is inserting. Index: key_pkey.
create function {schema}.find_or_start_v1(p_shard smallint, p_run json, p_bound_to uuid)
returns table (outcome text, owner_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_id uuid := p_run ->> 'id';
  v_owner uuid;
  v_workflow text;
begin
  if coalesce(p_bound_to, v_id) = v_id then
    insert into {schema}.key (shard, key, run_id, workflow, version, input_hash)
    values (p_shard, p_run ->> 'key', v_id, p_run ->> 'workflow', (p_run ->> 'version')::integer,
            {schema}.input_hash_v1(p_run ->> 'input', p_run ->> 'notes'))
    on conflict (shard, key) do nothing;
  end if;
  select k.run_id, k.workflow into v_owner, v_workflow
    from {schema}.key k where k.shard = p_shard and k.key = p_run ->> 'key';
  if v_workflow <> p_run ->> 'workflow' then
    return query select 'conflict', v_owner;
  elsif p_bound_to <> coalesce(v_owner, v_id) then
    return query select 'elsewhere', coalesce(v_owner, v_id);
  elsif v_owner = v_id then
    perform {schema}.put_runs_v1(p_shard, {clock}, json_build_array(p_run), null, null, null);
    return query select 'created', v_id;
  else
    return query select 'found', v_owner;
  end if;
end
$$;

-- Signals the run that has the key, or starts it. Answers what became of the run ('created', 'found', 'conflict', 'elsewhere'),
-- which run, and of the signal (as tell_runs; null where nothing was done).
-- Locks: the key, then as tell_runs.
create function {schema}.signal_or_start_v1(
  p_shard smallint, p_run json, p_bound_to uuid, p_id uuid, p_topic text, p_data text, p_notes text, p_key text)
returns table (outcome text, owner_id uuid, told text)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_outcome text;
  v_owner uuid;
  v_told text;
begin
  loop
    v_told := null;
    select f.outcome, f.owner_id into v_outcome, v_owner from {schema}.find_or_start_v1(p_shard, p_run, p_bound_to) f;
    if v_outcome in ('created', 'found') then
      select t.outcome into v_told
        from {schema}.tell_runs_v1(p_shard, array[p_id], array[v_owner], array[p_topic], array[p_data], array[p_notes], array[p_key]) t;
    end if;
    -- While we waited for it, it may have passed its key on to the run that it went on as.
    exit when v_told is distinct from 'ended'
           or exists (select 1 from {schema}.key k where k.shard = p_shard and k.key = p_run ->> 'key' and (k.run_id = v_owner) is true);
  end loop;
  return query select v_outcome, v_owner, v_told;
end
$$;

-- The same inside a caller's own transaction: only inserts and notifies, locks no run. Answers one text, an object.
create function {schema}.signal_or_start_in_transaction_v1(
  p_shard smallint, p_run json, p_bound_to uuid, p_id uuid, p_topic text, p_data text, p_notes text, p_key text)
returns text
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_outcome text;
  v_owner uuid;
  v_told text;
begin
  select f.outcome, f.owner_id into v_outcome, v_owner from {schema}.find_or_start_v1(p_shard, p_run, p_bound_to) f;
  if v_outcome in ('created', 'found') then
    v_told := {schema}.tell_in_transaction_v1(p_shard, p_id, v_owner, p_topic, p_data, p_notes, p_key);
  end if;
  return json_build_object('outcome', v_outcome, 'owner_id', v_owner, 'told', v_told);
end
$$;

-- Public. Signals the run that has the key, or starts it with the signal in its inbox; answers its id. The input, and what
-- else a start takes, counts only where a run is started. Refuses a key of another workflow, and one whose run has ended.
create function {schema}.signal_or_start(
  workflow text, key text, signal text, payload json default null, input json default null,
  idempotency_key text default null, version integer default 1, queue text default 'default', priority integer default 0,
  start_at timestamptz default null, expires_at timestamptz default null, deadline_at timestamptz default null,
  tags text[] default null)
returns uuid
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_shard constant smallint := 0;
  v_id uuid := {schema}.new_id_v1(v_shard);
  v_answer json;
begin
  perform {schema}.check_start_v1(signal_or_start.workflow, signal_or_start.input, signal_or_start.version,
                                  signal_or_start.key, signal_or_start.queue, signal_or_start.tags);
  perform {schema}.check_name_v1('key', signal_or_start.key);
  perform {schema}.check_name_v1('signal', signal_or_start.signal);
  if signal_or_start.idempotency_key is not null then
    perform {schema}.check_name_v1('idempotency key', signal_or_start.idempotency_key);
  end if;
  perform {schema}.check_payload_v1('The signal "' || signal_or_start.signal || '"', signal_or_start.payload);

  v_answer := {schema}.signal_or_start_in_transaction_v1(v_shard,
    {schema}.new_run_v1(v_id, signal_or_start.workflow, signal_or_start.input, signal_or_start.version, signal_or_start.key,
                        signal_or_start.queue, signal_or_start.priority, signal_or_start.start_at,
                        signal_or_start.expires_at, signal_or_start.deadline_at, signal_or_start.tags),
    null, {schema}.new_id_v1(v_shard), 'signal:' || signal_or_start.signal, signal_or_start.payload::text, null,
    signal_or_start.idempotency_key);
  if v_answer ->> 'outcome' = 'conflict' then
    raise exception 'The key "%" belongs to run %, which has another workflow.', signal_or_start.key, v_answer ->> 'owner_id'
      using errcode = 'PW002', detail = 'KEY_CONFLICT';
  end if;
  if v_answer ->> 'told' = 'ended' then
    raise exception 'The key "%" belongs to run %, which has ended and takes no more messages.',
        signal_or_start.key, v_answer ->> 'owner_id'
      using errcode = 'PW006', detail = 'RUN_ENDED';
  end if;
  return (v_answer ->> 'owner_id')::uuid;
end
$$;
