-- Telling runs, and time telling them.

-- Stores messages and wakes the runs that want them. Answers 'accepted', 'duplicate', 'ended' or 'missing' for each.
-- A message whose id is there already was accepted by an earlier try of this call.
-- Locks: run rows of the runs told and of their parents (a cancel, this one or one already there, may end a run at
-- once, which tells its parent), in id order; then the lease rows of the runs told, for one that is being completed has no other lock.
-- Waits for an idempotency key that another open transaction is inserting. Index: run_pkey, inbox_pkey, inbox_idempotency.
create function {schema}.tell_runs_v1(
  p_shard smallint, p_ids uuid[], p_runs uuid[], p_topics text[], p_data text[], p_notes text[], p_keys text[])
returns table (message_id uuid, outcome text)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_locked uuid[] := p_runs || {schema}.parents_of_v1(p_shard, p_runs);
  v_stored uuid[];
  v_wake uuid[];
  v_now timestamptz;
begin
  perform 1 from (select 1 from {schema}.run r
                   where r.shard = p_shard and r.id = any (v_locked)
                   order by r.id for no key update) r;
  v_now := {clock};

  with stored as (
    insert into {schema}.inbox (shard, run_id, id, chain_id, sent_at, topic, idempotency_key, data, notes)
    select p_shard, m.run_id, m.id, r.first_id, {clock}, m.topic, m.key, m.data::json, m.notes::json
      from unnest(p_ids, p_runs, p_topics, p_data, p_notes, p_keys) with ordinality
           m (id, run_id, topic, data, notes, key, place)
     cross join lateral (
       select r.first_id
         from {schema}.run r
        where r.shard = p_shard and r.id = m.run_id and {schema}.end_status_v1(p_shard, r.id) is null
       offset 0) r
     order by m.place
    on conflict do nothing
    returning id
  )
  select array_agg(s.id) into v_stored from stored s;

  -- What was being completed when it was looked at has ended once its lease can be had, and has not seen the message.
  if v_stored is not null then
    perform {schema}.unpack_runs_v1(p_shard, p_runs);
    perform 1 from (select 1 from {schema}.lease l
                     where l.shard = p_shard and l.run_id = any (p_runs)
                     order by l.run_id for update) l;
    with void as materialized (
      select i.place
        from unnest(p_runs, p_ids) m (run_id, id)
       cross join lateral (
         select i.ctid as place
           from {schema}.inbox i
          where i.shard = p_shard and i.run_id = m.run_id and i.id = m.id
         offset 0) i
       where {schema}.end_status_v1(p_shard, m.run_id) is not null and m.id = any (v_stored)
    ), gone as (
      delete from {schema}.inbox i using void v where i.ctid = v.place returning i.id
    )
    select array(select s from unnest(v_stored) s except select g.id from gone g) into v_stored;
  end if;

  return query
  select m.id,
         case when r.id is null then 'missing'
              when m.id = any (v_stored) then 'accepted'
              when exists (select 1 from {schema}.inbox i
                            where i.shard = p_shard and i.run_id = m.run_id and i.id = m.id offset 0) then 'accepted'
              when exists (select 1 from {schema}.inbox i
                            where i.shard = p_shard and coalesce(i.chain_id, i.run_id) = coalesce(r.first_id, r.id)
                              and i.idempotency_key = m.key offset 0) then 'duplicate'
              else 'ended' end
    from unnest(p_ids, p_runs, p_keys) m (id, run_id, key)
    left join lateral (
      select r.id, r.first_id
        from {schema}.run r
       where r.shard = p_shard and r.id = m.run_id
      offset 0) r on true;

  v_wake := array(select r.id from {schema}.run r
                   where r.shard = p_shard and r.id = any (p_runs) and {schema}.end_status_v1(p_shard, r.id) is null);
  if v_wake <> '{}' then
    perform {schema}.wake_runs_v1(p_shard, v_now, v_wake);
  end if;
end
$$;

-- Stores a message inside a caller's own transaction: only inserts and notifies, locks no run. The hint leads to wake_told.
-- What was sent to a run that went on as another goes to the one at the end of its chain.
create function {schema}.tell_in_transaction_v1(
  p_shard smallint, p_id uuid, p_run uuid, p_topic text, p_data text, p_notes text, p_key text)
returns text
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_run uuid := p_run;
  v_status text;
  v_first uuid;
  v_next uuid;
begin
  select {schema}.end_status_v1(p_shard, r.id), r.first_id, r.continued_as into v_status, v_first, v_next
    from {schema}.run r where r.shard = p_shard and r.id = v_run;
  if not found then
    return 'missing';
  end if;
  if v_next is not null then
    v_first := coalesce(v_first, p_run);
    select r.id, {schema}.end_status_v1(p_shard, r.id) into v_run, v_status
      from {schema}.run r where r.shard = p_shard and r.first_id = v_first and r.continued_as is null;
  end if;
  if v_status is not null then
    return case when exists (select 1 from {schema}.inbox i
                              where i.shard = p_shard and coalesce(i.chain_id, i.run_id) = coalesce(v_first, v_run)
                                and i.idempotency_key = p_key)
                then 'duplicate' else 'ended' end;
  end if;
  insert into {schema}.inbox (shard, run_id, id, chain_id, sent_to, sent_at, topic, idempotency_key, data, notes)
  values (p_shard, v_run, p_id, v_first, nullif(p_run, v_run), {clock}, p_topic, p_key, p_data::json, p_notes::json)
  on conflict do nothing;
  if not found then
    return 'duplicate';
  end if;
  perform {schema}.hint_runs_v1('s', array[v_run]);
  return 'accepted';
end
$$;

-- Looks at these runs' inboxes again: a message was stored without waking. One whose run went on as another before it was
-- committed is passed on. Locks and indexes as tell_runs, and the runs at the ends of chains.
create function {schema}.wake_told_v1(p_shard smallint, p_runs uuid[])
returns void
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_locked uuid[] := p_runs || {schema}.parents_of_v1(p_shard, p_runs) || {schema}.chain_ends_v1(p_shard, p_runs);
  v_wake uuid[];
begin
  perform 1 from (select 1 from {schema}.run r
                   where r.shard = p_shard and r.id = any (v_locked)
                   order by r.id for no key update) r;
  v_wake := array(select r.id from {schema}.run r
                   where r.shard = p_shard and r.id = any (p_runs) and {schema}.end_status_v1(p_shard, r.id) is null)
         || {schema}.forward_messages_v1(p_shard, p_runs, v_locked);
  if v_wake <> '{}' then
    perform {schema}.wake_runs_v1(p_shard, {clock}, v_wake);
  end if;
end
$$;

-- Takes parked runs whose time has come out of their room, earliest first. An empty look takes no transaction id.
-- Lanes are parallel arrays: what is of none of them is spared until it has been due for p_spares_ms, and left where it is. Without lanes
-- nothing is spared. p_worker: it holds those of its lanes from now on, p_most at most, as if it had claimed them, and is answered what
-- claim_runs answers; without it, or where it has ended, nobody holds any. Where nothing but a timer can happen to such a run, that has
-- fired by this: fired names it, and the fact is appended. All others become claimable, suspects and what has expired among them.
-- history: the facts before that, as a JSON list, where they are p_most_facts at most and none of them carries more than p_most_bytes.
-- The last row answered is a footer, as that of claim_runs. woken: how many have left their room. has_more: more may be due than it looked
-- at, or took; not where others were taking all of it. renewed: the worker's lease has begun anew. next_due_ms: when there is more to wake, as far as it knows.
-- Locks: the worker's row as keep_worker does, then parked rows, skipping those that others hold.
-- Index: parked_due, parked_pkey, run_pkey, event_pkey.
create function {schema}.wake_due_v1(
  p_shard smallint, p_limit integer, p_worker uuid, p_lease_ms integer, p_most integer, p_spares_ms integer,
  p_queues text[], p_workflows text[], p_versions integer[], p_crash_limits smallint[], p_most_facts integer, p_most_bytes integer)
returns table (
  run_id uuid, lane integer, ready_ms float8, input text, notes text, epoch integer, last_seq integer, told boolean,
  created_ms float8, more text, fired text, history text, woken integer, has_more boolean, renewed boolean, next_due_ms float8)
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := {clock};
  v_next timestamptz;
  v_lanes text[];
  v_holds boolean[];
  v_held uuid[];
  v_held_lanes integer[];
  v_others uuid[];
  v_look integer;
  v_places tid[];
  v_own_lanes integer[];
  v_seen integer;
  v_holdable integer;
  v_has_more boolean := false;
  v_renewed boolean := false;
  v_wanted integer;
  v_missed boolean := false;
  v_spares interval := p_spares_ms * interval '1 millisecond';
  v_spared_due timestamptz;
  v_rooms {schema}.room[];
begin
  select p.due_at into v_next from {schema}.parked p
   where p.shard = p_shard and p.due_at is not null
   order by p.due_at limit 1;

  if v_next <= v_now then
    if p_queues is null then
      v_others := array(select p.run_id from {schema}.parked p
                         where p.shard = p_shard and p.due_at <= v_now
                         order by p.due_at
                         limit p_limit
                           for update skip locked);
      v_has_more := cardinality(v_others) = p_limit;
    else
      select array_agg(l.version || '/' || length(l.workflow) || '/' || l.workflow || l.queue order by l.lane),
             array_agg(l.crash_limit > 0 and not exists (
               select 1 from {schema}.queue q where q.name = l.queue and q.paused_at is not null offset 0) order by l.lane)
        into v_lanes, v_holds
        from unnest(p_queues, p_workflows, p_versions, p_crash_limits) with ordinality l (queue, workflow, version, crash_limit, lane);
      -- What is spared, or is more than the worker takes, is not locked: others must be able to take it. Where the worker gets none of what
      -- was looked at first, its own may be behind what is spared, or what a peer is taking.
      v_look := case when p_worker is null then p_limit else least(p_most, p_limit) end;
      loop
        select array_agg(d.place) filter (where not d.is_spared), array_agg(d.own_lane) filter (where not d.is_spared),
               count(*), min(d.due_at) filter (where d.is_spared), count(d.own_lane)
          into v_places, v_own_lanes, v_seen, v_spared_due, v_holdable
          from (select p.ctid as place, p.due_at, r.lane is null and p.due_at > v_now - v_spares as is_spared,
                       case when p_worker is not null and v_holds[r.lane] and p.suspicion < 2
                              and (p.epoch = 0 and r.expires_at <= v_now) is not true
                            then r.lane end as own_lane
                  from {schema}.parked p
                 cross join lateral (
                   select array_position(v_lanes, r.version || '/' || length(r.workflow) || '/' || r.workflow || r.queue) as lane,
                          least(r.expires_at, r.deadline_at) as expires_at
                     from {schema}.run r
                    where r.shard = p_shard and r.id = p.run_id
                   offset 0) r
                 where p.shard = p_shard and p.due_at <= v_now
                 order by p.due_at
                 limit v_look) d;
        v_renewed := v_renewed or (v_holdable > 0 and {schema}.keep_worker_v1(p_worker, v_now, p_lease_ms)) is true;
        if v_renewed then
          -- Locked first: a message that was stored meanwhile is seen by the statements that follow.
          select array_agg(h.run_id), array_agg(h.lane) into v_held, v_held_lanes
            from (select t.run_id, u.lane
                    from unnest(v_places, v_own_lanes) u (place, lane)
                   cross join lateral (
                     select p.run_id from {schema}.parked p
                      where p.ctid = u.place and p.due_at <= v_now
                        for update skip locked) t
                   where u.lane is not null
                   limit p_most) h;
        end if;
        exit when v_held <> '{}' or v_seen < v_look or v_look = p_limit;
        v_look := p_limit;
      end loop;
      v_others := array(
        select t.run_id
          from unnest(v_places, v_own_lanes) u (place, lane)
         cross join lateral (
           select p.run_id from {schema}.parked p
            where p.ctid = u.place and p.due_at <= v_now
              for update skip locked) t
         where u.lane is null or not v_renewed);

      v_wanted := coalesce(cardinality(v_places), 0) - case when v_renewed then greatest(v_holdable - p_most, 0) else 0 end;
      v_missed := coalesce(cardinality(v_held), 0) + cardinality(v_others) < v_wanted;
      v_has_more := v_seen = v_look or (v_renewed and v_holdable > p_most);
      if v_missed and coalesce(cardinality(v_held), 0) + cardinality(v_others) = 0 then
        v_has_more := false;
      end if;
    end if;

    if v_held <> '{}' then
      return query
      with gone as (
        delete from {schema}.parked p
         where p.shard = p_shard and p.run_id = any (v_held)
        returning p.run_id, p.epoch + 1 as epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion, p.due_at, p.fires,
                  exists (select 1 from {schema}.inbox i
                           where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null offset 0) as told
      ), woken as materialized (
        select g.run_id, g.epoch, g.last_seq + f.fires as last_seq, g.attempt, g.failures, g.crashes, g.suspicion, g.due_at, g.told,
               case when f.fires = 1 then g.fires end as fired, h.lane, r.*, e.history,
               sum(coalesce(octet_length(r.input::text), 0) + coalesce(octet_length(r.input_notes::text), 0))
                 over (rows unbounded preceding) > 8000000 as left_out
          from gone g
          join unnest(v_held, v_held_lanes) h (run_id, lane) on h.run_id = g.run_id
         cross join lateral (
           select r.key, r.parent_id, r.root_id, r.depth, r.priority, r.input, r.input_notes, r.created_at, r.deadline_at, r.retry,
                  r.raw, r.tags
             from {schema}.run r
            where r.shard = p_shard and r.id = g.run_id
           offset 0) r
         cross join lateral (
           select (g.fires is not null and not g.told and (r.deadline_at <= v_now) is not true)::integer as fires) f
          left join lateral (
            select json_agg(e)::text as history
              from (select e.seq, e.kind, floor(round(date_part('epoch', e.at) * 1e6) / 1e3) as at_ms, e.name, e.attempt,
                           floor(round(date_part('epoch', e.began_at) * 1e6) / 1e3) as began_ms,
                           floor(round(date_part('epoch', e.due_at) * 1e6) / 1e3) as due_ms, e.worker_id, e.format,
                           case when e.kind <> 'completed' then e.data::text end as data,
                           case when e.kind <> 'completed' then e.notes::text end as notes
                      from {schema}.event e
                     where e.shard = p_shard and e.run_id = g.run_id and e.seq <= g.last_seq
                       -- What is large is not even read.
                       and (e.kind = 'completed'
                            or case when pg_column_size(e.data) > p_most_bytes + 100 then false
                                    else coalesce(octet_length(e.data::text), 0) <= p_most_bytes end
                               and case when pg_column_size(e.notes) > p_most_bytes + 100 then false
                                        else coalesce(octet_length(e.notes::text), 0) <= p_most_bytes end)
                     order by e.seq
                    offset 0) e
             where g.last_seq between 1 and p_most_facts
            having count(*) = g.last_seq) e on true
      ), fact as (
        insert into {schema}.event (shard, run_id, seq, at, kind, name)
        select p_shard, w.run_id, w.last_seq, v_now, 'timer_fired', w.fired
          from woken w
         where w.fired is not null
      ), held as (
        insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                    crashes, suspicion, crash_limit, told)
        select p_shard, w.run_id, p_worker, v_now, v_now, w.epoch, w.last_seq, w.attempt, w.failures, w.crashes, w.suspicion,
               p_crash_limits[w.lane], w.told
          from woken w
      )
      select w.run_id, w.lane, floor(round(date_part('epoch', w.due_at) * 1e6) / 1e3),
             case when not w.left_out then w.input::text end, case when not w.left_out then w.input_notes::text end,
             nullif(w.epoch, 1), nullif(w.last_seq, 0), nullif(w.told, false),
             floor(round(date_part('epoch', w.created_at) * 1e6) / 1e3),
             case when w.attempt > 1 or w.failures > 0 or w.suspicion > 0 or w.priority <> 0 or w.key is not null
                    or w.parent_id is not null or w.root_id is not null or w.deadline_at is not null or w.retry is not null
                    or w.raw or w.tags is not null or w.left_out
                  then json_build_object(
                    'attempt', w.attempt, 'failures', w.failures, 'suspicion', w.suspicion, 'priority', w.priority, 'key', w.key,
                    'parentId', w.parent_id, 'rootId', w.root_id, 'depth', w.depth,
                    'deadlineAt', floor(round(date_part('epoch', w.deadline_at) * 1e6) / 1e3), 'retry', w.retry,
                    'isRaw', w.raw, 'tags', w.tags, 'isInputLeftOut', w.left_out)::text end,
             w.fired, w.history, null::integer, null::boolean, null::boolean, null::float8
        from woken w;
    end if;

    if v_others <> '{}' then
      with gone as (
        delete from {schema}.parked p
         where p.shard = p_shard and p.run_id = any (v_others)
        returning (p.run_id, p.epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion,
                   exists (select 1 from {schema}.inbox i
                            where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null offset 0))::{schema}.room as room
      )
      select array_agg(g.room) into v_rooms from gone g;
      perform {schema}.put_ready_v1(p_shard, v_now, v_rooms);
    end if;

    -- What is due and still here is spared, or locked: by who takes it, who tells it something, or who dies before the commit.
    select p.due_at into v_next from {schema}.parked p
     where p.shard = p_shard and p.due_at > case when p_queues is null or v_has_more then '-infinity' else v_now end
     order by p.due_at limit 1;
    if not v_has_more then
      v_next := least(v_next, v_spared_due + v_spares, case when v_missed then v_now + interval '50 milliseconds' end);
    end if;
  end if;

  run_id := null;
  ready_ms := {schema}.server_v1();
  created_ms := floor(extract(epoch from v_now) * 1000);
  woken := coalesce(cardinality(v_held), 0) + coalesce(cardinality(v_others), 0);
  has_more := v_has_more;
  renewed := v_renewed;
  next_due_ms := floor(extract(epoch from v_next) * 1000);
  return next;
end
$$;
