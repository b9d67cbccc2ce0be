-- Reading. Functions too, since only a function carries its planner settings with it: a plan made while a table was small
-- would read the table for as long as the connection lasts.

-- A run's history, unfenced, in order: up to some bytes and one fact more, so that any line carries it in time. What comes after
-- that is not read; a row without a seq says that there is more. The output is the run's, and no part of its history.
-- Index: event_pkey.
create function {schema}.load_history_v1(p_shard smallint, p_run uuid, p_after_seq integer)
returns table (seq integer, kind text, name text, attempt integer, data text, notes text,
               at_ms float8, began_ms float8, due_ms float8, worker_id uuid, format smallint)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_bytes bigint := 0;
begin
  -- date_part answers a float8, which is exact to the microsecond here; extract a numeric, which took half of the time.
  for seq, kind, name, attempt, data, notes, at_ms, began_ms, due_ms, worker_id, format in
    select e.seq::integer, e.kind::text, e.name, e.attempt, case when e.kind <> 'completed' then e.data::text end,
           case when e.kind <> 'completed' then e.notes::text end,
           floor(round(date_part('epoch', e.at) * 1e6) / 1e3),
           floor(round(date_part('epoch', e.began_at) * 1e6) / 1e3),
           floor(round(date_part('epoch', e.due_at) * 1e6) / 1e3),
           e.worker_id, e.format
      from {schema}.event e
     where e.shard = p_shard and e.run_id = p_run and e.seq > p_after_seq
     order by e.seq
  loop
    if v_bytes >= 8000000 then
      seq := null;
      data := null;
      notes := null;
      return next;
      exit;
    end if;
    return next;
    v_bytes := v_bytes + coalesce(octet_length(data), 0) + coalesce(octet_length(notes), 0);
  end loop;
end
$$;

-- The histories of several runs, in order: up to some bytes of them all and one fact more; place: which of the runs, from 1. What
-- comes after that is not read; a row without a seq says that there is more of the run in that place, and that there may be of
-- those behind it. For runs that are known to be short: most histories are, and many are loaded at once when many runs wake.
-- Index: event_pkey.
create function {schema}.load_short_histories_v1(p_shard smallint, p_runs uuid[], p_after_seqs integer[])
returns table (place integer, seq integer, kind text, name text, attempt integer, data text, notes text,
               at_ms float8, began_ms float8, due_ms float8, worker_id uuid, format smallint)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_bytes bigint := 0;
begin
  for place, seq, kind, name, attempt, data, notes, at_ms, began_ms, due_ms, worker_id, format in
    select e.place::integer, e.seq::integer, e.kind::text, e.name, e.attempt, case when e.kind <> 'completed' then e.data::text end,
           case when e.kind <> 'completed' then e.notes::text end,
           floor(round(date_part('epoch', e.at) * 1e6) / 1e3),
           floor(round(date_part('epoch', e.began_at) * 1e6) / 1e3),
           floor(round(date_part('epoch', e.due_at) * 1e6) / 1e3),
           e.worker_id, e.format
      from (select p.place, e.*
              from unnest(p_runs, p_after_seqs) with ordinality p (run_id, after_seq, place)
             cross join lateral (
               select e.* from {schema}.event e
                where e.shard = p_shard and e.run_id = p.run_id and e.seq > p.after_seq
               offset 0) e
             order by p.place, e.seq
            offset 0) e
  loop
    if v_bytes >= 4000000 then
      seq := null;
      data := null;
      notes := null;
      return next;
      exit;
    end if;
    return next;
    v_bytes := v_bytes + coalesce(octet_length(data), 0) + coalesce(octet_length(notes), 0);
  end loop;
end
$$;

-- How runs ended, for those who wait; status is null while one lives. chain_end: of a run that went on as another, the one at
-- the end of its chain. Index: run_pkey, event_pkey, stopped_pkey, run_chain.
create function {schema}.read_ends_v1(p_shard smallint, p_runs uuid[])
returns table (id uuid, status text, output text, output_notes text, error text, error_notes text, chain_end uuid)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  select r.id, e.status, e.output::text, e.output_notes::text, e.error::text, e.error_notes::text,
         case when r.continued_as is not null then {schema}.chain_end_v1(p_shard, coalesce(r.first_id, r.id)) end
    from {schema}.run r
    left join lateral (
      select e.status, e.output, e.output_notes, e.error, e.error_notes
        from {schema}.endings e
       where e.shard = p_shard and e.run_id = r.id
      offset 0) e on true
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

-- Runs as people see them, newest first: older than p_before, newer than p_after. Null stands for any.
-- The narrowest filter leads, and the others are asked of what it finds:
--   error code       stopped_error
--   tags             tag_pkey, by the first of them
--   status           stopped_status for failed, cancelled, timed_out and expired; ready_pkey, pack_pkey, lease_pkey, parked_pkey
--                    and parked_reason for those that live; run_pkey for completed
--   anything else    run_pkey
-- Looks at no more than p_look runs. next_id, the same in every row, says where to go on, if there may be more: a page may
-- be short, or be one row without a run.
create function {schema}.list_runs_v1(
  p_shard smallint, p_before uuid, p_after uuid, p_status text, p_workflow text, p_queue text, p_tags text[],
  p_error_code text, p_limit integer, p_look integer)
returns table (next_id uuid, run {schema}.runs)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_before uuid := coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_after uuid := coalesce(p_after, '00000000-0000-0000-0000-000000000000');
  v_look uuid[];
  v_found uuid[];
  v_next uuid;
  v_newest uuid;
  v_floor uuid;
begin
  if p_error_code is not null then
    v_look := array(select s.run_id from {schema}.stopped s
                     where s.shard = p_shard and s.error_code = p_error_code and s.run_id < v_before and s.run_id > v_after
                     order by s.error_code desc, s.run_id desc limit p_look);
  elsif p_tags is not null then
    v_look := array(select t.run_id from {schema}.tag t
                     where t.shard = p_shard and t.tag = p_tags[1] and t.run_id < v_before and t.run_id > v_after
                     order by t.tag desc, t.run_id desc limit p_look);
  elsif p_status in ('failed', 'cancelled', 'timed_out', 'expired') then
    v_look := array(select s.run_id from {schema}.stopped s
                     where s.shard = p_shard and s.status = p_status and s.run_id < v_before and s.run_id > v_after
                     order by s.status desc, s.run_id desc limit p_look);
  elsif p_status = 'running' then
    v_look := array(select m.run_id
                      from ((select l.run_id from {schema}.lease l
                              where l.shard = p_shard and l.run_id < v_before and l.run_id > v_after
                              order by l.run_id desc limit p_look)
                            union all
                            select u.run_id
                              from (select k.run_ids from {schema}.pack k
                                     where k.shard = p_shard and k.worker_id is not null
                                     order by k.worker_id, k.claimed_at offset 0) k
                             cross join unnest(k.run_ids) u (run_id)
                             where u.run_id < v_before and u.run_id > v_after) m
                     order by m.run_id desc limit p_look);
  elsif p_status in ('paused', 'blocked') then
    v_look := array(select p.run_id from {schema}.parked p
                     where p.shard = p_shard and p.reason = p_status and p.reason <> 'waiting'
                       and p.run_id < v_before and p.run_id > v_after
                     order by p.reason desc, p.run_id desc limit p_look);
  elsif p_status = 'waiting' then
    v_look := array(select p.run_id from {schema}.parked p
                     where p.shard = p_shard and p.run_id < v_before and p.run_id > v_after
                     order by p.run_id desc limit p_look);
  elsif p_status = 'pending' then
    -- A pack has the id of its last run, and its runs were made within a second: those from the floor on are in so many packs that end
    -- before the page does, or in one that ends within a second of it. What is older is for the next page.
    v_newest := {schema}.later_id_v1(v_before, 1001);
    v_floor := coalesce((select k.id from {schema}.pack k
                          where k.shard = p_shard and k.id < v_before and k.worker_id is null
                          order by k.id desc offset p_look / 32 limit 1), v_after);
    v_look := array(select m.run_id
                      from ((select y.run_id from {schema}.ready y
                              where y.shard = p_shard and y.run_id < v_before and y.run_id > v_after and y.run_id >= v_floor
                              order by y.run_id desc limit p_look)
                            union all
                            select u.run_id
                              from (select k.run_ids from {schema}.pack k
                                     where k.shard = p_shard and k.id < v_newest and k.id >= v_floor and k.run_ids[1] < v_before
                                       and k.worker_id is null
                                     order by k.id desc) k
                             cross join unnest(k.run_ids) u (run_id)
                             where u.run_id < v_before and u.run_id > v_after and u.run_id >= v_floor
                            union all
                            (select p.run_id from {schema}.parked p
                              where p.shard = p_shard and p.reason = 'delayed'
                                and p.run_id < v_before and p.run_id > v_after and p.run_id >= v_floor
                              order by p.reason desc, p.run_id desc limit p_look)) m
                     order by m.run_id desc limit p_look);
  else
    v_look := array(select r.id from {schema}.run r
                     where r.shard = p_shard and r.id < v_before and r.id > v_after
                     order by r.id desc limit p_look);
  end if;

  v_found := array(
    select r.id
      from unnest(v_look) with ordinality c (id, place)
     cross join lateral (
       select r.id
         from {schema}.runs r
        where r.shard = p_shard and r.id = c.id
          and (p_status is null or r.status = p_status)
          and (p_workflow is null or r.workflow = p_workflow)
          and (p_queue is null or r.queue = p_queue)
          and (p_tags is null or r.tags @> p_tags)
       offset 0) r
     limit p_limit);
  if cardinality(v_found) = p_limit then
    v_next := v_found[p_limit];
  elsif cardinality(v_look) = p_look then
    v_next := v_look[p_look];
  elsif v_floor > v_after then
    v_next := v_floor;
  end if;

  if v_found = '{}' then
    return query select v_next, null::{schema}.runs where v_next is not null;
    return;
  end if;
  return query
  select v_next, r
    from unnest(v_found) with ordinality f (id, place)
   cross join lateral (
     select r from {schema}.runs r where r.shard = p_shard and r.id = f.id offset 0) r;
end
$$;

-- The least id of those that are made so many milliseconds after this one, or later.
create function {schema}.later_id_v1(p_id uuid, p_ms integer)
returns uuid
language plpgsql immutable
as $$
begin
  return (lpad(to_hex(least(x'ffffffffffff'::bigint, ('x' || left(replace(p_id::text, '-', ''), 12))::bit(48)::bigint + p_ms)), 12, '0')
          || repeat(case when p_id > 'fffffff0-0000-0000-0000-000000000000' then 'f' else '0' end, 20))::uuid;
end
$$;

-- The run that a key belongs to. Index: key_pkey.
create function {schema}.find_key_v1(p_shard smallint, p_key text)
returns uuid
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  return (select k.run_id from {schema}.key k where k.shard = p_shard and k.key = p_key);
end
$$;

-- How many runs there are in each status. Counts up to p_most of a kind; beyond that it takes the server's own statistics,
-- and says so. Index: the primary keys, parked_reason, stopped_status.
create function {schema}.count_runs_v1(p_shard smallint, p_most integer)
returns table (status text, n bigint, is_exact boolean)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set jit = off
as $$
#variable_conflict use_column
declare
  v_ready bigint := (select count(*) from (select 1 from {schema}.ready y where y.shard = p_shard limit p_most) y);
  v_packs bigint := (select count(*) from (select 1 from {schema}.pack k where k.shard = p_shard limit p_most) k);
  v_packed bigint := (select coalesce(sum(cardinality(k.run_ids)), 0)
                        from (select k.run_ids, k.worker_id from {schema}.pack k where k.shard = p_shard limit p_most) k
                       where k.worker_id is null);
  v_held_packed bigint := (select coalesce(sum(cardinality(k.run_ids)), 0)
                             from (select k.run_ids from {schema}.pack k
                                    where k.shard = p_shard and k.worker_id is not null
                                    order by k.worker_id, k.claimed_at limit p_most) k);
  v_held bigint := (select count(*) from (select 1 from {schema}.lease l where l.shard = p_shard limit p_most) l);
  v_parked bigint := (select count(*) from (select 1 from {schema}.parked p where p.shard = p_shard limit p_most) p);
  v_delayed bigint := (select count(*) from (select 1 from {schema}.parked p
                                              where p.shard = p_shard and p.reason = 'delayed' limit p_most) p);
  v_paused bigint := (select count(*) from (select 1 from {schema}.parked p
                                             where p.shard = p_shard and p.reason = 'paused' limit p_most) p);
  v_blocked bigint := (select count(*) from (select 1 from {schema}.parked p
                                              where p.shard = p_shard and p.reason = 'blocked' limit p_most) p);
  v_stopped bigint := (select count(*) from (select 1 from {schema}.stopped s where s.shard = p_shard limit p_most) s);
  v_all bigint := (select count(*) from (select 1 from {schema}.run r where r.shard = p_shard limit p_most) r);
  v_exact boolean := v_all < p_most;
begin
  if not v_exact then
    v_ready := {schema}.estimate_rows_v1('{schema}.ready', v_ready, p_most);
    v_packed := {schema}.estimate_rows_v1('{schema}.pack', v_packs, p_most) * v_packed / greatest(v_packs, 1);
    v_held := {schema}.estimate_rows_v1('{schema}.lease', v_held, p_most);
    v_parked := {schema}.estimate_rows_v1('{schema}.parked', v_parked, p_most);
    v_stopped := {schema}.estimate_rows_v1('{schema}.stopped', v_stopped, p_most);
    v_all := {schema}.estimate_rows_v1('{schema}.run', v_all, p_most);
  end if;
  return query
  select c.status, c.n, c.is_exact
    from (values ('pending', v_ready + v_packed + v_delayed, v_ready < p_most and v_packs < p_most and v_delayed < p_most),
                 ('running', v_held + v_held_packed, v_held < p_most and v_held_packed < p_most),
                 ('waiting', greatest(v_parked - v_delayed - v_paused - v_blocked, 0), v_parked < p_most),
                 ('paused', v_paused, v_paused < p_most),
                 ('blocked', v_blocked, v_blocked < p_most),
                 ('completed', greatest(v_all - v_ready - v_packed - v_held_packed - v_held - v_parked - v_stopped, 0), v_exact)) c (status, n, is_exact);
  return query
  select s.status, s.n, s.n < p_most
    from unnest('{failed,cancelled,timed_out,expired}'::text[]) k (status)
   cross join lateral (
     select k.status, count(*) as n
       from (select 1 from {schema}.stopped s where s.shard = p_shard and s.status = k.status limit p_most) s) s;
end
$$;

-- The rows of a table, as the statistics have them; what was counted, where that is less than the most that is counted.
create function {schema}.estimate_rows_v1(p_table regclass, p_counted bigint, p_most integer)
returns bigint
language plpgsql stable
as $$
begin
  if p_counted < p_most then
    return p_counted;
  end if;
  return greatest(p_most, (select greatest(s.n_live_tup, c.reltuples::bigint)
                             from pg_catalog.pg_class c
                             left join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
                            where c.oid = p_table));
end
$$;

-- What waits to be claimed, by lane: how many (up to p_most a lane), and since when the oldest.
-- Index: ready_claim and pack_claim, one step a lane and priority.
create function {schema}.backlog_v1(p_shard smallint, p_most integer)
returns table (queue text, workflow text, version integer, n bigint, is_exact boolean, oldest_ms float8)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
#variable_conflict use_column
begin
  return query
  with recursive lane as (
    (select y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
       from {schema}.ready y
      order by y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
      limit 1)
    union all
    select n.queue, n.workflow, n.version, n.suspect, n.priority, n.ready_at
      from lane l
     cross join lateral (
       select y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
         from {schema}.ready y
        where (y.queue, y.workflow, y.version, y.suspect, y.priority) > (l.queue, l.workflow, l.version, l.suspect, l.priority)
        order by y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
        limit 1) n
  ), packed_lane as (
    (select k.queue, k.workflow, k.version, k.priority, k.ready_at
       from {schema}.pack k
      where k.worker_id is null
      order by k.queue, k.workflow, k.version, k.priority, k.ready_at
      limit 1)
    union all
    select n.queue, n.workflow, n.version, n.priority, n.ready_at
      from packed_lane l
     cross join lateral (
       select k.queue, k.workflow, k.version, k.priority, k.ready_at
         from {schema}.pack k
        where (k.queue, k.workflow, k.version, k.priority) > (l.queue, l.workflow, l.version, l.priority) and k.worker_id is null
        order by k.queue, k.workflow, k.version, k.priority, k.ready_at
        limit 1) n
  ), kind as (
    select l.queue, l.workflow, l.version, min(l.ready_at) as oldest_at
      from (select l.queue, l.workflow, l.version, l.ready_at from lane l
             union all
            select l.queue, l.workflow, l.version, l.ready_at from packed_lane l) l
     group by l.queue, l.workflow, l.version
  )
  select k.queue, k.workflow, k.version, least(c.n, p_most), c.n < p_most, floor(extract(epoch from k.oldest_at) * 1000)::float8
    from kind k
   cross join lateral (
     select count(*) + (select coalesce(sum(cardinality(s.run_ids)), 0)
                          from (select s.run_ids from {schema}.pack s
                                 where s.shard = p_shard and s.queue = k.queue and s.workflow = k.workflow and s.version = k.version
                                   and s.worker_id is null
                                 limit p_most) s) as n
       from (select 1 from {schema}.ready y
              where y.shard = p_shard and y.queue = k.queue and y.workflow = k.workflow and y.version = k.version
              limit p_most) y) c
   order by k.queue, k.workflow, k.version;
end
$$;

-- The finished attempts of a run, with who made them. Index: event_pkey, worker_pkey.
create function {schema}.read_attempts_v1(p_shard smallint, p_run uuid)
returns setof {schema}.attempts
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  return query select a.* from {schema}.attempts a where a.shard = p_shard and a.run_id = p_run order by a.seq;
end
$$;
