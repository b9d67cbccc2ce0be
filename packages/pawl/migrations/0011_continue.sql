-- Runs that go on as another one, patches, and blocked runs.
--
-- A chain is a run, the one that went on from it, and so on. Every run but the first knows the first, and the one at the end
-- is found by that in one look, however long the chain is. Idempotency keys of messages hold for the whole chain.

-- The run at the end of a chain. Index: run_chain.
create function {schema}.chain_end_v1(p_shard smallint, p_first uuid)
returns uuid
language plpgsql stable
as $$
begin
  return (select r.id from {schema}.run r where r.shard = p_shard and r.first_id = p_first and r.continued_as is null);
end
$$;

-- The ends of the chains of those of these runs that went on as another one. Index: run_pkey, run_chain.
create function {schema}.chain_ends_v1(p_shard smallint, p_runs uuid[])
returns uuid[]
language plpgsql
as $$
begin
  return array(
    select {schema}.chain_end_v1(p_shard, c.first_id)
      from (select coalesce(r.first_id, r.id) as first_id, r.continued_as
              from {schema}.run r
             where r.shard = p_shard and r.id = any (p_runs)
            offset 0) c
     where c.continued_as is not null);
end
$$;

-- Lets runs that are ending go on as others: the next one of each has its key, its place in its parent, its terms and its
-- unread messages, and is claimable at once. Children's ends stay: the requests they answer are the old run's.
-- p_next: id, run_id (the old run), version, input, notes, raw. Answers those that were told something, for the caller to wake.
-- The caller has locked the old runs. Index: run_pkey, key_pkey, inbox_unread.
create function {schema}.continue_runs_v1(p_shard smallint, p_now timestamptz, p_next json, p_lost uuid[])
returns uuid[]
language plpgsql
as $$
declare
  v_old uuid[];
  v_new uuid[];
  v_told uuid[];
  v_rooms {schema}.room[];
begin
  -- One run is at the end of a chain: the old one makes way first.
  with target as materialized (
    select r.place, n.id
      from json_to_recordset(p_next) as n (id uuid, run_id uuid)
     cross join lateral (
       select r.ctid as place
         from {schema}.run r
        where r.shard = p_shard and r.id = n.run_id
       offset 0) r
     where p_lost is null or n.run_id <> all (p_lost)
  ), made_way as (
    update {schema}.run r
       set continued_as = t.id
      from target t
     where r.ctid = t.place
    returning r.id, r.continued_as
  )
  select array_agg(m.id), array_agg(m.continued_as) into v_old, v_new from made_way m;
  if v_old is null then
    return null;
  end if;

  with born as (
    insert into {schema}.run (shard, id, workflow, version, queue, priority, input, input_notes, key, created_at,
                              deadline_at, parent_id, parent_request, root_id, depth, tags, retry, raw, first_id,
                              detached, fifo_key, batch_key, tenant)
    select p_shard, n.id, r.workflow, n.version, r.queue, r.priority, n.input::json, n.notes::json, r.key, p_now,
           r.deadline_at, r.parent_id, r.parent_request, coalesce(r.root_id, r.id), r.depth, r.tags, r.retry, n.raw,
           coalesce(r.first_id, r.id), r.detached, r.fifo_key, r.batch_key, r.tenant
      from json_to_recordset(p_next) as n (id uuid, run_id uuid, version integer, input text, notes text, raw boolean)
     cross join lateral (
       select r.id, r.first_id, r.root_id, r.parent_id, r.deadline_at, r.priority, r.depth, r.detached, r.workflow, r.queue,
              r.key, r.parent_request, r.fifo_key, r.batch_key, r.tenant, r.tags, r.retry
         from {schema}.run r
        where r.shard = p_shard and r.id = n.run_id
       offset 0) r
     where n.id = any (v_new)
    returning id, tags
  )
  insert into {schema}.tag (shard, run_id, tag)
  select p_shard, b.id, t
    from born b
   cross join unnest(b.tags) t
  on conflict do nothing;

  -- What the key was given for stays: a repeated start is known by the first input.
  with mine as materialized (
    select k.place, n.new_id
      from unnest(v_old, v_new) n (old_id, new_id)
     cross join lateral (
       select r.key from {schema}.run r where r.shard = p_shard and r.id = n.old_id offset 0) r
     cross join lateral (
       select k.ctid as place
         from {schema}.key k
        where k.shard = p_shard and k.key = r.key and (k.run_id = n.old_id) is true
          for update) k
  )
  update {schema}.key k set run_id = m.new_id from mine m where k.ctid = m.place;

  v_told := {schema}.move_messages_v1(p_shard, v_old, v_new);
  select array_agg((n.id, 0, 0, 1, 0, 0, 0, v_told is not null and n.id = any (v_told))::{schema}.room)
    into v_rooms from unnest(v_new) n (id);
  perform {schema}.put_ready_v1(p_shard, p_now, v_rooms);
  return v_told;
end
$$;

-- Moves the unread messages of runs to those that go on from them, in their order; the old rows stay, taken by no event, so
-- that a repeated send is known. Why a run was to be cancelled is dropped where it was sealed for the old run: the store cannot
-- seal it anew. Answers the runs that have got any. Index: inbox_unread.
create function {schema}.move_messages_v1(p_shard smallint, p_from uuid[], p_to uuid[])
returns uuid[]
language plpgsql
as $$
declare
  v_told uuid[];
begin
  with unread as materialized (
    select i.place, n.new_id, r.first_id, i.idempotency_key
      from unnest(p_from, p_to) n (old_id, new_id)
     cross join lateral (
       select r.first_id from {schema}.run r where r.shard = p_shard and r.id = n.new_id offset 0) r
     cross join lateral (
       select i.ctid as place, i.topic, i.idempotency_key
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = n.old_id and i.taken_seq is null
          for update) i
     where i.topic <> 'child'
  ), gone as (
    update {schema}.inbox i
       set taken_seq = 0, idempotency_key = null
      from unread u
     where i.ctid = u.place
    returning u.new_id, u.first_id, u.idempotency_key, i.run_id, i.id, i.sent_to, i.sent_at, i.topic, i.name, i.data, i.notes
  ), moved as (
    insert into {schema}.inbox (shard, run_id, id, chain_id, sent_to, sent_at, topic, name, idempotency_key, data, notes)
    select p_shard, g.new_id, g.id, g.first_id, coalesce(g.sent_to, g.run_id), g.sent_at, g.topic, g.name, g.idempotency_key,
           case when g.topic <> 'cancel' or g.notes is null then g.data end,
           case when g.topic <> 'cancel' then g.notes end
      from gone g
    on conflict do nothing
    returning run_id
  )
  select array_agg(distinct m.run_id) into v_told from moved m;
  return v_told;
end
$$;

-- Passes on what a caller's transaction sent to a run that went on as another before that committed. p_locked: the runs whose
-- rows the caller has locked; what would go to another one is left for the next look. Answers those that have got any.
create function {schema}.forward_messages_v1(p_shard smallint, p_runs uuid[], p_locked uuid[])
returns uuid[]
language plpgsql
as $$
declare
  v_from uuid[];
  v_to uuid[];
begin
  select array_agg(f.id), array_agg(f.chain_end) into v_from, v_to
    from (select c.id, {schema}.chain_end_v1(p_shard, c.first_id) as chain_end
            from (select r.id, coalesce(r.first_id, r.id) as first_id, r.continued_as
                    from {schema}.run r
                   where r.shard = p_shard and r.id = any (p_runs)
                  offset 0) c
           where c.continued_as is not null
          offset 0) f
   where f.chain_end = any (p_locked) and {schema}.end_status_v1(p_shard, f.chain_end) is null;
  if v_from is null then
    return null;
  end if;
  return {schema}.move_messages_v1(p_shard, v_from, v_to);
end
$$;

-- Public, and described in docs/sql.md. Which patches a workflow's runs have come by. Whoever has none of these facts and
-- started before the first of them may need the old side. Index: event_patched, run_pkey, the rooms' primary keys.
create view {schema}.patches as
with used as materialized (
  select e.name as patch, r.workflow, r.version, e.shard, min(e.at) as since,
         count(*) filter (where d.status is null) as runs
    from {schema}.event e
   cross join lateral (
     select r.workflow, r.version from {schema}.run r where r.shard = e.shard and r.id = e.run_id offset 0) r
    left join lateral (
      select d.status from {schema}.endings d where d.shard = e.shard and d.run_id = e.run_id offset 0) d on true
   where e.kind = 'patched'
   group by e.name, r.workflow, r.version, e.shard
), live as materialized (
  select v.run_id as live_id, v.workflow as live_workflow, v.version as live_version, v.shard as live_shard, r.created_at
    from (select v.run_id, v.workflow, v.version, v.shard
            from {schema}.live_runs v
           where (v.workflow, v.version) in (select u.workflow, u.version from used u)) v
   cross join lateral (
     select r.created_at from {schema}.run r where r.shard = v.shard and r.id = v.run_id offset 0) r
)
select u.workflow, u.version, u.patch, u.since, u.runs::integer as runs, o.older_runs, o.newer_runs, u.shard
  from used u
 cross join lateral (
   select (count(*) filter (where l.created_at < u.since))::integer as older_runs,
          (count(*) filter (where l.created_at >= u.since))::integer as newer_runs
     from live l
    where l.live_workflow = u.workflow and l.live_version = u.version and l.live_shard = u.shard
      and not exists (select 1 from {schema}.event h
                       where h.kind = 'patched' and h.name = u.patch and h.run_id = l.live_id and h.shard = u.shard
                      offset 0)) o;

-- The patches of one workflow. Index: as the view.
create function {schema}.read_patches_v1(p_shard smallint, p_workflow text, p_version integer)
returns table (patch text, since_ms float8, runs integer, older_runs integer, newer_runs integer)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
begin
  return query
  select p.patch, floor(extract(epoch from p.since) * 1000)::float8, p.runs, p.older_runs, p.newer_runs
    from {schema}.patches p
   where p.shard = p_shard and p.workflow = p_workflow and p.version = p_version
   order by p.since, p.patch;
end
$$;

-- Makes blocked runs of these workflows (name@version) on these queues due now: some thousand of them; the others come by
-- their own time. Locks: parked rows, skipping those that others hold. Index: parked_reason, run_pkey.
create function {schema}.retry_blocked_v1(p_queues text[], p_workflows text[])
returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_now timestamptz := {clock};
begin
  with blocked as materialized (
    select p.run_id, p.shard
      from {schema}.parked p
     where p.reason = 'blocked' and p.reason <> 'waiting'
     order by p.reason, p.run_id
     limit 1000
  ), fit as materialized (
    select m.place
      from blocked b
     cross join lateral (
       select r.workflow, r.version, r.queue from {schema}.run r where r.shard = b.shard and r.id = b.run_id offset 0) r
     cross join lateral (
       select p.ctid as place
         from {schema}.parked p
        where p.shard = b.shard and p.run_id = b.run_id and p.reason = 'blocked' and p.due_at > v_now
          and r.workflow || '@' || r.version = any (p_workflows) and r.queue = any (p_queues)
          for update skip locked) m
  )
  update {schema}.parked p set due_at = v_now from fit f where p.ctid = f.place;
end
$$;
