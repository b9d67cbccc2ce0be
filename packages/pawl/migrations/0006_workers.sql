-- Workers: who is alive, and recovery from those who are not.

-- A worker that is new here may have the code that blocked runs wait for: they are tried again at once.
-- Locks: what it inserts, parked rows (skip locked). An id that exists is left alone.
create function {schema}.register_worker_v1(
  p_worker uuid, p_lease_ms integer, p_host text, p_pid integer, p_queues text[], p_concurrency integer,
  p_workflows text[], p_settings json)
returns void
language plpgsql
set search_path = pg_catalog
as $$
begin
  insert into {schema}.worker (id, started_at, heard_at, lease_ms, host, pid, queues, concurrency, workflows, settings)
  values (p_worker, {clock}, {clock}, p_lease_ms, p_host, p_pid, p_queues, p_concurrency, p_workflows, p_settings)
  on conflict do nothing;
  if found then
    perform {schema}.retry_blocked_v1(p_queues, p_workflows);
  end if;
end
$$;

-- Keeps a worker's leases alive, unless it has expired: an expired one is never revived. Compares the leases with those
-- the worker knows: 'returned' ones had their claim's answer lost, 'lost' ones are gone, 'told' ones have news.
-- Answers a row a run, and a last row 'alive' or 'expired' with the time. A sample that cannot be stored is dropped.
-- p_lease_ms: its lease from now on; null leaves it. A longer one than it has is granted only while it holds nothing: such a
-- worker rests, and need not be heard as often. The answer says which lease it has.
-- Locks: the worker's row (for a longer lease against claims too), then packs and leases that are unknown (skip locked).
-- Index: worker_pkey, pack_worker, lease_worker.
create function {schema}.heartbeat_v1(
  p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_claims_known_to_ms float8,
  p_long_steps json, p_sample json, p_lease_ms integer)
returns table (run_id uuid, news text, now_ms float8, lease_ms float8)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '1s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_known_to timestamptz := to_timestamp(p_claims_known_to_ms / 1000.0);
  v_packs uuid[];
  v_unknown uuid[];
  v_lease_ms integer;
  -- Only then claims are kept out until it has the longer lease.
  v_may_rest boolean;
begin
  select w.lease_ms into v_lease_ms from {schema}.worker w where w.id = p_worker;
  v_may_rest := p_lease_ms > v_lease_ms;
  if v_may_rest then
    select w.lease_ms into v_lease_ms from {schema}.worker w where w.id = p_worker for update;
  else
    select w.lease_ms into v_lease_ms from {schema}.worker w where w.id = p_worker for no key update;
  end if;
  v_now := {clock};
  if p_lease_ms <= v_lease_ms
     or v_may_rest
        and not exists (select 1 from {schema}.lease l
                         where l.shard = p_shard and l.worker_id = p_worker order by l.claimed_at offset 0)
        and not exists (select 1 from {schema}.pack k
                         where k.shard = p_shard and k.worker_id = p_worker order by k.claimed_at offset 0) then
    v_lease_ms := p_lease_ms;
  end if;
  update {schema}.worker w
     set heard_at = v_now, long_steps = p_long_steps, lease_ms = v_lease_ms
   where w.id = p_worker and w.ended_at is null
     and w.heard_at > v_now - w.lease_ms * interval '1 millisecond';
  if not found then
    return query select null::uuid, 'expired'::text, floor(extract(epoch from v_now) * 1000)::float8, v_lease_ms::float8;
    return;
  end if;

  if p_sample is not null then
    begin
      insert into {schema}.worker_sample (worker_id, at, held, memory_bytes, cpu_ratio, lag_ms)
      select p_worker, v_now, s.held, s.memory_bytes, s.cpu_ratio, s.lag_ms
        from json_to_record(p_sample) as s (held integer, memory_bytes bigint, cpu_ratio real, lag_ms real)
      on conflict do nothing;
    exception when others then
      null;
    end;
  end if;

  -- Compared as sets: as a join it may cost the product of both. Packs with runs that it does not know get leases.
  v_packs := array(select k.id from {schema}.pack k
                    where k.shard = p_shard and k.worker_id = p_worker and k.claimed_at <= v_known_to
                    order by k.claimed_at);
  if v_packs <> '{}'
     and exists (select u
                   from (select k.run_ids from {schema}.pack k where k.shard = p_shard and k.id = any (v_packs)) k
                  cross join unnest(k.run_ids) u
                 except
                 select k.run_id from unnest(p_runs, p_epochs) k (run_id, epoch) where k.epoch = 1) then
    v_packs := array(select k.id from {schema}.pack k
                      where k.shard = p_shard and k.id = any (v_packs) and (k.worker_id = p_worker) is true
                      order by k.id
                        for update skip locked);
    perform {schema}.unpack_v1(p_shard, v_packs);
  end if;
  v_unknown := array(
    select u.run_id
      from ((select l.run_id, l.epoch
               from {schema}.lease l
              where l.shard = p_shard and l.worker_id = p_worker and l.claimed_at <= v_known_to
              order by l.claimed_at)
            except
            select k.run_id, k.epoch from unnest(p_runs, p_epochs) k (run_id, epoch)) u);
  if v_unknown <> '{}' then
    v_unknown := array(
      select l.run_id
        from {schema}.lease l
       where l.shard = p_shard and l.run_id = any (v_unknown)
         and (l.worker_id = p_worker) is true and l.claimed_at <= v_known_to
       order by l.run_id
         for update skip locked);
    perform {schema}.return_leases_v1(p_shard, v_now, v_unknown);
  end if;

  return query
  select u, 'returned'::text, null::float8, null::float8 from unnest(v_unknown) u;
  return query
  select k.run_id, case when l.run_id is null then 'lost' else 'told' end, null::float8, null::float8
    from unnest(p_runs, p_epochs) k (run_id, epoch)
    left join lateral (
      select l.run_id, l.told
        from {schema}.lease l
       where l.shard = p_shard and l.run_id = k.run_id and l.epoch = k.epoch and (l.worker_id = p_worker) is true
      offset 0) l on true
   where (l.run_id is null or l.told)
     and (k.epoch = 1 and k.run_id in (select u
                                         from (select k.run_ids from {schema}.pack k
                                                where k.shard = p_shard and k.worker_id = p_worker
                                                order by k.claimed_at
                                               offset 0) k
                                        cross join unnest(k.run_ids) u)) is not true;
  return query
  select null::uuid, 'alive'::text, floor(extract(epoch from v_now) * 1000)::float8, v_lease_ms::float8;
end
$$;

-- The worker has stopped: gives back whatever it still holds. Locks: its row, then its packs, then its leases, each in id order.
create function {schema}.retire_worker_v1(p_shard smallint, p_worker uuid)
returns void
language plpgsql
set search_path = pg_catalog
set lock_timeout = '1s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_now timestamptz;
  v_packs uuid[];
  v_runs uuid[];
begin
  perform 1 from {schema}.worker w where w.id = p_worker for update;
  v_now := {clock};
  v_packs := array(select k.id from {schema}.pack k
                    where k.shard = p_shard and k.worker_id = p_worker
                    order by k.claimed_at);
  if v_packs <> '{}' then
    perform 1 from (select 1 from {schema}.pack k
                     where k.shard = p_shard and k.id = any (v_packs)
                     order by k.id for update) k;
    perform {schema}.unpack_v1(p_shard, v_packs);
  end if;
  v_runs := array(select l.run_id from {schema}.lease l
                   where l.shard = p_shard and l.worker_id = p_worker
                   order by l.claimed_at);
  v_runs := array(select l.run_id from {schema}.lease l
                   where l.shard = p_shard and l.run_id = any (v_runs) and (l.worker_id = p_worker) is true
                   order by l.run_id for update);
  perform {schema}.return_leases_v1(p_shard, v_now, v_runs);
  update {schema}.worker w set ended_at = coalesce(w.ended_at, v_now), swept_at = v_now where w.id = p_worker;
end
$$;

-- Workers that have not ended, and those that ended lately, newest first, each with its last sample. Only reads.
-- Index: worker_unswept, worker_ended, worker_pkey, worker_sample_pkey.
create function {schema}.list_workers_v1(p_ended_within_ms float8, p_limit integer)
returns table (id uuid, host text, pid integer, queues text[], workflows text[], concurrency integer, lease_ms float8,
               settings text, started_ms float8, heard_ms float8, ended_ms float8, is_alive boolean, long_steps text,
               sample_ms float8, sample_held integer, memory_bytes float8, cpu_ratio float8, lag_ms float8)
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := {clock};
  v_ids uuid[];
begin
  v_ids := array(select w.id from {schema}.worker w where w.swept_at is null
                  union
                 select w.id from {schema}.worker w where w.ended_at >= v_now - p_ended_within_ms * interval '1 millisecond');
  return query
  select w.id, w.host, w.pid, w.queues, w.workflows, w.concurrency, w.lease_ms::float8, w.settings::text,
         floor(extract(epoch from w.started_at) * 1000)::float8, floor(extract(epoch from w.heard_at) * 1000)::float8,
         floor(extract(epoch from w.ended_at) * 1000)::float8,
         w.ended_at is null and w.heard_at > v_now - w.lease_ms * interval '1 millisecond',
         w.long_steps::text, floor(extract(epoch from s.at) * 1000)::float8, s.held, s.memory_bytes::float8,
         s.cpu_ratio::float8, s.lag_ms::float8
    from {schema}.worker w
    left join lateral (
      select s.at, s.held, s.memory_bytes, s.cpu_ratio, s.lag_ms
        from {schema}.worker_sample s
       where s.worker_id = w.id
       order by s.at desc
       limit 1) s on true
   where w.id = any (v_ids)
     and (w.ended_at is null or w.ended_at >= v_now - p_ended_within_ms * interval '1 millisecond')
   order by w.started_at desc, w.id desc
   limit p_limit;
end
$$;

-- Recovery, level-triggered, by every worker, for ever. Never waits: what others hold is left for the next sweep.
-- Locks: dead workers' rows, then their packs, which get leases, then run rows (of their runs and those runs' parents), then lease or
-- ready rows, all skip locked.
-- Index: worker_unswept, pack_worker, lease_worker, ready_expiry, inbox_unread, run_pkey. An empty sweep takes no transaction id.
create function {schema}.sweep_v1(p_shard smallint, p_limit integer, p_after uuid)
returns table (expired_workers integer, recovered integer, failed integer, expired_runs integer, rescued integer,
               after_id uuid, more boolean)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := {clock};
  v_dead uuid[];
  v_packs uuid[];
  v_ended integer := 0;
  v_recovered integer := 0;
  v_failed integer := 0;
  v_expired integer := 0;
  v_rescued integer := 0;
  v_more boolean := false;
  v_candidates uuid[];
  v_spent uuid[];
  v_locked uuid[];
  v_told uuid[];
  v_after uuid;
  v_looked integer;
begin
  if exists (select 1 from {schema}.worker w
              where w.swept_at is null
                and (w.ended_at is not null or w.heard_at <= v_now - w.lease_ms * interval '1 millisecond')) then
    v_dead := array(select w.id from {schema}.worker w
                     where w.swept_at is null
                       and (w.ended_at is not null or w.heard_at <= v_now - w.lease_ms * interval '1 millisecond')
                     order by w.id
                       for update skip locked);
    v_packs := array(select k.id
                       from unnest(v_dead) d (id)
                      cross join lateral (
                        select k.id
                          from {schema}.pack k
                         where k.shard = p_shard and k.worker_id = d.id
                         order by k.claimed_at
                           for update skip locked) k);
    if v_packs <> '{}' then
      perform {schema}.unpack_v1(p_shard, v_packs);
    end if;
    update {schema}.worker w
       set ended_at = v_now,
           held_at_end = (select count(*)
                            from (select 1 from {schema}.lease l
                                   where l.shard = p_shard and l.worker_id = w.id and l.began_at is not null
                                   order by l.claimed_at
                                  offset 0) l)
                         + (select coalesce(sum(cardinality(k.run_ids)), 0)
                              from (select k.run_ids from {schema}.pack k
                                     where k.shard = p_shard and k.worker_id = w.id and k.began_at is not null
                                     order by k.claimed_at
                                    offset 0) k)
     where w.id = any (v_dead) and w.ended_at is null;
    get diagnostics v_ended = row_count;

    -- Those whose crash limit is spent tell their parents, and so need them. The others go first, and need only themselves:
    -- a parent whose children end all the time is hardly ever free.
    select array_agg(c.run_id) filter (where not c.is_spent), array_agg(c.run_id) filter (where c.is_spent)
      into v_candidates, v_spent
      from (select l.run_id, l.began_at is not null and l.crashes + (d.held_at_end = 1)::integer >= l.crash_limit as is_spent
              from (select w.id, coalesce(w.held_at_end, 0) as held_at_end from {schema}.worker w where w.id = any (v_dead)) d
             cross join lateral (
               select l.run_id, l.began_at, l.crashes, l.crash_limit
                 from {schema}.lease l
                where l.shard = p_shard and l.worker_id = d.id
                order by l.claimed_at
               offset 0) l
             order by is_spent, l.run_id
             limit p_limit) c;
    v_locked := {schema}.lock_free_runs_v1(p_shard, coalesce(v_candidates, '{}'), false)
             || {schema}.lock_free_runs_v1(p_shard, coalesce(v_spent, '{}'), true);
    select r.recovered, r.failed into v_recovered, v_failed from {schema}.recover_leases_v1(p_shard, v_now, v_dead, v_locked) r;
    v_more := v_recovered + v_failed = p_limit;

    update {schema}.worker w
       set swept_at = v_now
     where w.id = any (v_dead)
       and not exists (select 1 from {schema}.lease l
                        where l.shard = p_shard and l.worker_id = w.id
                        order by l.claimed_at
                       offset 0)
       and not exists (select 1 from {schema}.pack k
                        where k.shard = p_shard and k.worker_id = w.id
                        order by k.claimed_at
                       offset 0);
  end if;

  v_candidates := array(select y.run_id from {schema}.ready y
                         where y.shard = p_shard and y.expires_at <= v_now
                         order by y.expires_at limit p_limit);
  if v_candidates <> '{}' then
    v_expired := {schema}.expire_runs_v1(p_shard, v_now, {schema}.lock_free_runs_v1(p_shard, v_candidates, true));
    v_more := v_more or v_expired = p_limit;
  end if;

  -- Overlooked: parked runs that are told, and cancels, pauses and resumes that nobody has passed on.
  select array_agg(distinct m.run_id) filter (where m.is_overlooked), count(*), max(m.place)
    into v_told, v_looked, v_after
    from (select u.run_id, u.run_id::text as place,
                 exists (select 1 from {schema}.parked p
                          where p.shard = p_shard and p.run_id = u.run_id
                            and exists (select 1 from {schema}.inbox i
                                         where i.shard = p_shard and i.run_id = u.run_id and i.taken_seq is null
                                           and i.topic = any (p.wants)
                                        offset 0)
                         offset 0)
                 or u.topic in ('cancel', 'pause', 'resume')
                    and (exists (select 1 from {schema}.ready y
                                  where y.shard = p_shard and y.run_id = u.run_id and not y.told
                                 offset 0)
                         or {schema}.is_packed_v1(p_shard, u.run_id)
                         or exists (select 1 from {schema}.lease l
                                     where l.shard = p_shard and l.run_id = u.run_id and not l.told
                                    offset 0))
                 or u.topic <> 'child'
                    and exists (select 1 from {schema}.run r
                                 where r.shard = p_shard and r.id = u.run_id and r.continued_as is not null
                                offset 0) as is_overlooked
            from (select i.run_id, i.topic
                    from {schema}.inbox i
                   where i.shard = p_shard and i.taken_seq is null
                     and i.run_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000'::uuid)
                   order by i.shard, i.run_id
                   limit 1000) u) m;
  if v_told is not null then
    v_told := {schema}.lock_free_runs_v1(p_shard, v_told || {schema}.chain_ends_v1(p_shard, v_told), true);
    perform {schema}.forward_messages_v1(p_shard, v_told, v_told);
    select count(*) into v_rescued
      from {schema}.parked p
     where p.shard = p_shard and p.run_id = any (v_told)
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null and i.topic = any (p.wants)
                   offset 0);
    perform {schema}.wake_runs_v1(p_shard, v_now, v_told);
  end if;

  return query select v_ended, v_recovered, v_failed, v_expired, v_rescued,
                      case when v_looked = 1000 then v_after end, v_more;
end
$$;

-- Locks those of these runs that nobody is working on, together with their parents where asked for, and their rows in the
-- rooms; answers those for which all of that could be had without waiting.
create function {schema}.lock_free_runs_v1(p_shard smallint, p_runs uuid[], p_with_parents boolean)
returns uuid[]
language plpgsql
as $$
declare
  v_locked uuid[];
  v_busy uuid[];
  v_packs uuid[];
begin
  if p_runs = '{}' then
    return p_runs;
  end if;
  v_locked := p_runs;
  if p_with_parents then
    v_locked := v_locked || {schema}.parents_of_v1(p_shard, p_runs);
  end if;
  v_locked := array(
    select r.id from {schema}.run r
     where r.shard = p_shard and r.id = any (v_locked)
     order by r.id
       for no key update skip locked);

  -- A record, a claim and a due timer hold only the row in the room, or the pack. Packs come first: who is in none by then, or no
  -- longer, is met in a room.
  v_packs := array(select distinct r.pack_id from {schema}.run r
                    where r.shard = p_shard and r.id = any (v_locked) and {schema}.is_packed_v1(p_shard, r.id));
  if v_packs <> '{}' then
    v_packs := array(select k from unnest(v_packs) k
                     except
                     select k.id from (select k.id from {schema}.pack k
                                        where k.shard = p_shard and k.id = any (v_packs) for update skip locked) k);
  end if;
  v_busy := array(select r.id from {schema}.run r
                   where r.shard = p_shard and r.id = any (v_locked) and (r.pack_id = any (v_packs)) is true);
  v_busy := v_busy || array(
    (select l.run_id from {schema}.lease l where l.shard = p_shard and l.run_id = any (v_locked)
      union all
     select y.run_id from {schema}.ready y where y.shard = p_shard and y.run_id = any (v_locked)
      union all
     select p.run_id from {schema}.parked p where p.shard = p_shard and p.run_id = any (v_locked))
    except
    (select l.run_id from (select l.run_id from {schema}.lease l
                            where l.shard = p_shard and l.run_id = any (v_locked) for update skip locked) l
      union all
     select y.run_id from (select y.run_id from {schema}.ready y
                            where y.shard = p_shard and y.run_id = any (v_locked) for update skip locked) y
      union all
     select p.run_id from (select p.run_id from {schema}.parked p
                            where p.shard = p_shard and p.run_id = any (v_locked) for update skip locked) p));
  return array(select r.id from {schema}.run r
                where r.shard = p_shard and r.id = any (v_locked) and r.id = any (p_runs) and r.id <> all (v_busy)
                  and (not p_with_parents or r.parent_id is null or (r.parent_id = any (v_locked) and r.parent_id <> all (v_busy))));
end
$$;

-- Takes locked runs from dead workers. Each crash adds to the run's suspicion, and a suspect is tried alone: one that was alone
-- is a suspect at once. A crash counts against a run only if the worker held nothing else.
create function {schema}.recover_leases_v1(p_shard smallint, p_now timestamptz, p_dead uuid[], p_runs uuid[])
returns table (recovered integer, failed integer)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_runs uuid[];
  v_failed uuid[];
  v_epochs integer[];
  v_attempts integer[];
  v_statuses text[];
  v_children uuid[];
  v_free uuid[];
  v_error text := '{"name":"PawlError","code":"WORKER_CRASHED","message":"The worker died while it ran this, as often as the crash limit allows."}';
begin
  v_runs := array(select l.run_id from {schema}.lease l
                   where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = any (p_dead)) is true
                   order by l.run_id
                     for update skip locked);

  insert into {schema}.event (shard, run_id, seq, at, kind, attempt, began_at, worker_id, data)
  select p_shard, l.run_id,
         {schema}.newest_seq_v1(p_shard, l.run_id) + 1,
         p_now, 'attempt_crashed', l.attempt, l.began_at, l.worker_id,
         json_build_object('workerId', l.worker_id, 'alone', w.held_at_end = 1)
    from {schema}.lease l
   cross join lateral (select w.held_at_end from {schema}.worker w where w.id = l.worker_id offset 0) w
   where l.shard = p_shard and l.run_id = any (v_runs) and l.began_at is not null;

  with crashed as materialized (
    select l.ctid as place, w.alone
      from {schema}.lease l
     cross join lateral (
       select (w.held_at_end = 1)::integer as alone
         from {schema}.worker w
        where w.id = l.worker_id
       offset 0) w
     where l.shard = p_shard and l.run_id = any (v_runs) and l.began_at is not null
  )
  update {schema}.lease l
     set crashes = l.crashes + c.alone,
         suspicion = greatest(l.suspicion + 1, 2 * c.alone),
         attempt = l.attempt + 1
    from crashed c
   where l.ctid = c.place;

  with gone as (
    delete from {schema}.lease l
     where l.shard = p_shard and l.run_id = any (v_runs) and l.began_at is not null and l.crashes >= l.crash_limit
    returning l.run_id, l.epoch, l.attempt - 1 as attempt
  ), fact as (
    insert into {schema}.event (shard, run_id, seq, at, kind, data)
    select p_shard, g.run_id,
           {schema}.newest_seq_v1(p_shard, g.run_id) + 1,
           p_now, 'failed', v_error::json
      from gone g
  )
  select array_agg(g.run_id), array_agg(g.epoch), array_agg(g.attempt) into v_failed, v_epochs, v_attempts from gone g;

  -- Before the parents are told: one of them may be among those given back.
  perform {schema}.return_leases_v1(p_shard, p_now, v_runs);
  if v_failed is not null then
    v_statuses := array_fill('failed'::text, array[cardinality(v_failed)]);
    perform {schema}.wake_runs_v1(p_shard, p_now, {schema}.finish_runs_v1(p_shard, p_now, v_failed,
      {schema}.parents_of_v1(p_shard, v_failed), v_statuses, v_epochs, v_attempts,
      array_fill(v_error, array[cardinality(v_failed)]), null));
    -- Their children are told as in a caller's own transaction: those that somebody is working on hear of it by the hint.
    v_children := {schema}.cancel_children_v1(p_shard, p_now, {schema}.stopped_children_v1(p_shard, v_failed, v_statuses), v_failed);
    if v_children is not null then
      v_free := {schema}.lock_free_runs_v1(p_shard, v_children, true);
      perform {schema}.wake_runs_v1(p_shard, p_now, nullif(v_free, '{}'));
      perform {schema}.hint_runs_v1('s', (select array_agg(c) from unnest(v_children) c where c <> all (v_free)));
    end if;
  end if;
  return query select cardinality(v_runs) - coalesce(cardinality(v_failed), 0), coalesce(cardinality(v_failed), 0);
end
$$;

-- Ends locked runs that nobody began in time: before they expired, or before their deadline.
create function {schema}.expire_runs_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns integer
language plpgsql
as $$
declare
  v_expired uuid[];
  v_epochs integer[];
  v_attempts integer[];
  v_statuses text[];
begin
  with late as materialized (
    select y.ctid as place
      from {schema}.ready y
     where y.shard = p_shard and y.run_id = any (p_runs) and (y.expires_at <= p_now) is true
     order by y.run_id
       for update skip locked
  ), gone as (
    delete from {schema}.ready y using late
     where y.ctid = late.place
    returning y.run_id, y.last_seq, y.epoch, y.attempt, y.expires_at
  ), ended as materialized (
    select g.run_id, g.last_seq, g.epoch, g.attempt,
           case when g.expires_at = r.expires_at then 'expired' else 'timed_out' end as status
      from gone g
     cross join lateral (
       select r.expires_at from {schema}.run r where r.shard = p_shard and r.id = g.run_id offset 0) r
  ), fact as (
    insert into {schema}.event (shard, run_id, seq, at, kind)
    select p_shard, e.run_id, e.last_seq + 1, p_now, e.status from ended e
  )
  select array_agg(e.run_id), array_agg(e.epoch), array_agg(e.attempt), array_agg(e.status)
    into v_expired, v_epochs, v_attempts, v_statuses from ended e;
  if v_expired is not null then
    perform {schema}.wake_runs_v1(p_shard, p_now, {schema}.finish_runs_v1(p_shard, p_now, v_expired,
      {schema}.parents_of_v1(p_shard, v_expired), v_statuses, v_epochs, v_attempts, null, null));
  end if;
  return coalesce(cardinality(v_expired), 0);
end
$$;
