-- One run that comes alone, as on a system with little to do: a start that is held at once, a step, and an end. They do what
-- create_runs, record_events and end_runs do for many, in a third of the time: their values are no lists, and what need not be asked
-- of one run is not asked.
-- Where it is not as simple as that they do nothing and say so, or fail with a unique violation, and the functions for many are asked.

-- Creates a plain run that p_holder holds from its start. Answers since when and the server; no row: nothing was done.
-- Locks: what it inserts, and p_holder's row as keep_worker does.
create function {schema}.create_held_run_v1(
  p_shard smallint, p_holder uuid, p_crash_limit smallint, p_lease_ms integer,
  n_id uuid, n_workflow text, n_version integer, n_queue text, n_priority integer, n_input text, n_notes text)
returns table (held_ms float8, server float8)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_now timestamptz;
begin
  if exists (select 1 from {schema}.queue q where q.name = n_queue and q.paused_at is not null)
     or not {schema}.keep_worker_v1(p_holder, {clock}, p_lease_ms) then
    return;
  end if;
  v_now := {clock};
  insert into {schema}.run (shard, id, workflow, version, queue, priority, input, input_notes, created_at, depth)
  values (p_shard, n_id, n_workflow, n_version, n_queue, n_priority, n_input::json, n_notes::json, v_now, 0);
  insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                              crashes, suspicion, crash_limit, told)
  values (p_shard, n_id, p_holder, v_now, v_now, 1, 0, 1, 0, 0, 0, p_crash_limit, false);
  held_ms := floor(extract(epoch from v_now) * 1000);
  server := {schema}.server_v1();
  return next;
end
$$;

-- Appends the fact that a step of a held run has completed, e_*. Answers the time and whether the run was told something; no row:
-- nothing was done, for the lease is lost, or the server is another than it was claimed from.
-- Locks: its lease row. Index: lease_pkey, event_pkey.
create function {schema}.record_step_v1(
  p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_server float8,
  e_seq integer, e_name text, e_attempt integer, e_began_ms float8, e_data text, e_notes text)
returns table (now_ms float8, told boolean)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_now timestamptz;
begin
  if p_server <> {schema}.server_v1() then
    return;
  end if;
  select l.told into record_step_v1.told
    from {schema}.lease l
   where l.shard = p_shard and l.run_id = p_run and (l.worker_id = p_worker) is true and l.epoch = p_epoch
     for update;
  if not found then
    return;
  end if;
  v_now := {clock};
  insert into {schema}.event (shard, run_id, seq, at, kind, name, attempt, began_at, data, notes)
  values (p_shard, p_run, e_seq, v_now, 'step_completed', e_name, e_attempt, to_timestamp(e_began_ms / 1000.0), e_data::json,
          e_notes::json);
  now_ms := floor(extract(epoch from v_now) * 1000);
  return next;
end
$$;

-- Completes a held run that has no parent and tells nobody anything but its last fact, e_*. False: nothing was done, for the lease is
-- lost, or the server is another than it was claimed from. Listeners hear of it by announce_ends, which nobody need wait for.
-- Locks: its lease row. Index: lease_pkey, event_pkey.
create function {schema}.complete_run_v1(
  p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_server float8,
  e_seq integer, e_attempt integer, e_epoch integer, e_began_ms float8, e_data text, e_notes text)
returns boolean
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  if p_server <> {schema}.server_v1() then
    return false;
  end if;
  delete from {schema}.lease l
   where l.shard = p_shard and l.run_id = p_run and (l.worker_id = p_worker) is true and l.epoch = p_epoch;
  if not found then
    return false;
  end if;
  insert into {schema}.event (shard, run_id, seq, at, kind, attempt, epoch, began_at, data, notes, worker_id)
  values (p_shard, p_run, e_seq, {clock}, 'completed', e_attempt, e_epoch, to_timestamp(e_began_ms / 1000.0), e_data::json,
          e_notes::json, p_worker);
  return true;
end
$$;

-- Tells listeners of runs that complete_run has completed. It is a hint: who waits for an end looks for it all the same, more rarely.
create function {schema}.announce_ends_v1(p_runs uuid[])
returns void
language plpgsql
set search_path = pg_catalog
as $$
begin
  perform {schema}.hint_runs_v1('e', p_runs);
end
$$;
