-- Reading. Functions too, since only a function carries its planner settings with it: a plan made while a table was small
-- would read the table for as long as the connection lasts.

-- A run's history, unfenced, in order. Index: event_pkey.
create function {schema}.load_history_v1(p_shard smallint, p_run uuid, p_after_seq integer)
returns table (seq integer, kind text, name text, attempt integer, data text, notes text,
               at_ms float8, began_ms float8, due_ms float8)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
  select e.seq, e.kind, e.name, e.attempt, e.data::text, e.notes::text,
         floor(extract(epoch from e.at) * 1000)::float8,
         floor(extract(epoch from e.began_at) * 1000)::float8,
         floor(extract(epoch from e.due_at) * 1000)::float8
    from {schema}.event e
   where e.shard = p_shard and e.run_id = p_run and e.seq > p_after_seq
   order by e.seq;
end
$$;

-- How runs ended, for those who wait; status is null while one lives. Index: run_pkey.
create function {schema}.read_ends_v1(p_shard smallint, p_runs uuid[])
returns table (id uuid, status text, output text, output_notes text, error text, error_notes text)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  select r.id, r.status, r.output::text, r.output_notes::text, r.error::text, r.error_notes::text
    from {schema}.run r
   where r.shard = p_shard and r.id = any (p_runs);
end
$$;

-- One run as people see it. Index: run_pkey and the rooms' primary keys.
create function {schema}.read_run_v1(p_shard smallint, p_run uuid)
returns setof {schema}.runs
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  return query select r.* from {schema}.runs r where r.shard = p_shard and r.id = p_run;
end
$$;

-- Runs as people see them, newest first, older than p_before. Null stands for any.
-- Index: run_pkey, backwards; what the filters leave out is stepped over.
create function {schema}.list_runs_v1(
  p_shard smallint, p_before uuid, p_status text, p_workflow text, p_queue text, p_limit integer)
returns setof {schema}.runs
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
  return query
  select r.*
    from {schema}.runs r
   where r.shard = p_shard
     and r.id < coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
     and (p_status is null or r.status = p_status)
     and (p_workflow is null or r.workflow = p_workflow)
     and (p_queue is null or r.queue = p_queue)
   order by r.id desc
   limit p_limit;
end
$$;
