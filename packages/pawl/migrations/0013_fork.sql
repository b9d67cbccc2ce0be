-- Forking: a new run that begins with a part of another run's history.

-- Creates the run as create_runs does, with these events as its history: p_events is an array of rows of event, without their
-- run. `at` is kept, and is now where it is left out. A run that is there already is left alone, so the call is safe to repeat.
-- Answers 'created', 'existing' or 'conflict', and the run that has the key.
-- Locks: as create_runs. Index: key_pkey, run_pkey, event_pkey, the rooms' primary keys.
create function {schema}.fork_run_v1(p_shard smallint, p_run json, p_events json)
returns table (outcome text, owner_id uuid)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_id uuid := p_run ->> 'id';
  v_now timestamptz := {clock};
  v_outcome text := 'created';
  v_owner uuid := v_id;
begin
  select coalesce(s.outcome, v_outcome), coalesce(s.owner_id, v_owner) into v_outcome, v_owner
    from (select 1) one
    left join {schema}.start_runs_v1(p_shard, json_build_array(p_run), p_run ->> 'key' is not null, false, null, null) s on true;
  -- A statement of its own: it sees what an earlier try committed while this one waited for it.
  if v_outcome = 'created'
     and not exists (select 1 from {schema}.event e where e.shard = p_shard and e.run_id = v_id and e.seq = 1) then
    insert into {schema}.event (shard, run_id, seq, at, kind, name, attempt, began_at, due_at, data, notes)
    select p_shard, v_id, e.seq, coalesce(to_timestamp(e.at_ms / 1000.0), v_now), e.kind, e.name, e.attempt,
           to_timestamp(e.began_ms / 1000.0), to_timestamp(e.due_ms / 1000.0), e.data::json, e.notes::json
      from json_to_recordset(p_events) as e (seq integer, at_ms float8, kind text, name text, attempt integer,
             began_ms float8, due_ms float8, data text, notes text);
    update {schema}.ready y set last_seq = json_array_length(p_events) where y.shard = p_shard and y.run_id = v_id;
  end if;
  return query select v_outcome, v_owner;
end
$$;
