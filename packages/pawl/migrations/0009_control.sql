-- What operators do to runs, whoever holds them: terminate, redrive, reschedule. One run row is locked before its rooms are
-- looked at. The rooms are visited in the order in which a run moves without that lock: parked, ready, lease. Only a holder
-- that gives its run back moves it from lease to ready, so a run that was met nowhere is looked for again.

-- Ends a run at once, without its code. Its holder, if it has one, finds its lease gone.
-- Answers 'terminated', 'ended' or 'missing'. Fails with 40001 if it must be tried again.
-- Locks: run rows of the run, its parent and its live children, in id order; then its pack; then their leases, in id order; then its room.
-- Index: run_pkey, run_parent, the rooms' primary keys, event_pkey.
create function {schema}.terminate_run_v1(p_shard smallint, p_run uuid, p_data text, p_notes text)
returns text
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_locked uuid[] := p_run || {schema}.parents_of_v1(p_shard, array[p_run])
                  || {schema}.stopped_children_v1(p_shard, array[p_run], '{cancelled}');
  v_children uuid[];
  v_leased uuid[];
  v_status text;
  v_epoch integer;
  v_attempt integer;
  v_began_at timestamptz;
  v_worker uuid;
  v_seq integer;
  v_now timestamptz;
  v_wake uuid[];
begin
  perform 1 from (select 1 from {schema}.run r
                   where r.shard = p_shard and r.id = any (v_locked)
                   order by r.id for no key update) r;
  v_now := {clock};
  select {schema}.end_status_v1(p_shard, r.id) into v_status from {schema}.run r where r.shard = p_shard and r.id = p_run;
  if not found then
    return 'missing';
  end if;
  if v_status is not null then
    return 'ended';
  end if;
  -- All leases that are needed, together, and packs before them: a holder of several locks them so, too.
  perform {schema}.unpack_runs_v1(p_shard, array[p_run]);
  v_leased := array(select l.run_id from {schema}.lease l
                     where l.shard = p_shard and l.run_id = any (v_locked)
                     order by l.run_id for update);
  delete from {schema}.parked p where p.shard = p_shard and p.run_id = p_run returning p.epoch, p.attempt into v_epoch, v_attempt;
  for i in 1 .. 3 loop
    exit when v_epoch is not null;
    delete from {schema}.ready y where y.shard = p_shard and y.run_id = p_run returning y.epoch, y.attempt into v_epoch, v_attempt;
    exit when v_epoch is not null;
    delete from {schema}.lease l where l.shard = p_shard and l.run_id = p_run
    returning l.epoch, l.attempt, l.began_at, l.worker_id into v_epoch, v_attempt, v_began_at, v_worker;
  end loop;
  if v_epoch is null or v_worker is not null and p_run <> all (v_leased) then
    raise exception 'run % is being moved', p_run using errcode = 'serialization_failure';
  end if;

  -- Its holder may have added some before we had the lease.
  v_children := {schema}.stopped_children_v1(p_shard, array[p_run], '{cancelled}');
  if not v_children <@ v_locked then
    raise exception 'children were added meanwhile' using errcode = 'serialization_failure';
  end if;

  v_seq := {schema}.newest_seq_v1(p_shard, p_run);
  insert into {schema}.event (shard, run_id, seq, at, kind, attempt, began_at, worker_id, data, notes)
  values (p_shard, p_run, v_seq + 1, v_now, 'cancel_requested', null, null, null, p_data::json, p_notes::json),
         (p_shard, p_run, v_seq + 2, v_now, 'cancelled', case when v_began_at is not null then v_attempt end, v_began_at,
          case when v_began_at is not null then v_worker end, null, null);
  v_wake := {schema}.finish_runs_v1(p_shard, v_now, array[p_run], {schema}.parents_of_v1(p_shard, array[p_run]), '{cancelled}',
                                    array[v_epoch], array[v_attempt], array[{schema}.cancel_error_v1(p_data::json)], null)
         || {schema}.cancel_children_v1(p_shard, v_now, v_children, array[p_run]);
  perform {schema}.wake_runs_v1(p_shard, v_now, v_wake);
  if v_worker is not null then
    perform {schema}.hint_runs_v1('t', array[p_run]);
  end if;
  return 'terminated';
end
$$;

-- Gives ended runs another life: limits count from zero, deadlines that have passed are dropped. What they had finished is
-- kept, and one that completed stays as it is; with p_fresh nothing is remembered, and any ended run begins anew but one that
-- went on as another.
-- p_ended_ms: only if a run's end is still the one of that instant, so that a repeated call gives one life; null: any end.
-- Answers 'redriven', 'live' (or ended again since then), 'completed' or 'missing' for each.
-- Locks: run rows, in id order. Index: run_pkey, run_parent, stopped_pkey, inbox_unread, inbox_pkey, event_pkey, stream_pkey.
create function {schema}.redrive_runs_v1(p_shard smallint, p_runs uuid[], p_ended_ms float8[], p_fresh boolean)
returns table (run_id uuid, outcome text)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_redriven uuid[];
  v_rooms {schema}.room[];
begin
  perform 1 from (select 1 from {schema}.run r
                   where r.shard = p_shard and r.id = any (p_runs)
                   order by r.id for no key update) r;
  v_now := {clock};
  return query
  select i.id, case when r.id is null then 'missing'
                    when e.status is null then 'live'
                    when e.status = 'completed' and (not p_fresh or r.continued_as is not null) then 'completed'
                    when floor(extract(epoch from e.ended_at) * 1000)::float8 <> i.ended_ms then 'live'
                    else 'redriven' end
    from (select distinct on (i.id) i.id, i.ended_ms from unnest(p_runs, p_ended_ms) i (id, ended_ms)) i
    left join lateral (
      select r.id, r.continued_as from {schema}.run r where r.shard = p_shard and r.id = i.id offset 0) r on true
    left join lateral (
      select e.status, e.ended_at from {schema}.endings e where e.shard = p_shard and e.run_id = i.id offset 0) e on true;
  v_redriven := array(
    select distinct r.id
      from unnest(p_runs, p_ended_ms) i (id, ended_ms)
     cross join lateral (
       select r.id, r.continued_as from {schema}.run r where r.shard = p_shard and r.id = i.id offset 0) r
     cross join lateral (
       select e.status, e.ended_at from {schema}.endings e where e.shard = p_shard and e.run_id = i.id offset 0) e
     where (p_fresh and r.continued_as is null or e.status <> 'completed')
       and (floor(extract(epoch from e.ended_at) * 1000)::float8 <> i.ended_ms) is not true);
  if v_redriven = '{}' then
    return;
  end if;

  -- What was asked of its last life does not concern this one. What its parent asked says so even if it was heard.
  update {schema}.inbox i
     set taken_seq = 0
   where i.shard = p_shard and i.run_id = any (v_redriven) and i.taken_seq is null and i.topic in ('cancel', 'pause', 'resume');
  with asked as materialized (
    select i.place
      from (select r.id, r.parent_id from {schema}.run r where r.shard = p_shard and r.id = any (v_redriven) offset 0) r
     cross join lateral (
       select i.ctid as place
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = r.id and i.id = {schema}.cancel_from_parent_v1(r.id, r.parent_id)
          for update) i
  )
  update {schema}.inbox i set taken_seq = 0 from asked a where i.ctid = a.place;
  update {schema}.run r
     set start_at = null, expires_at = null,
         deadline_at = case when r.deadline_at > v_now then r.deadline_at end
   where r.shard = p_shard and r.id = any (v_redriven);
  select array_agg((e.run_id, e.epoch, 0, e.attempt + (e.epoch > 0)::integer, 0, 0,
                    ((e.error ->> 'code' = 'WORKER_CRASHED') is true)::integer * 2, true)::{schema}.room)
    into v_rooms
    from {schema}.endings e
   where e.shard = p_shard and e.run_id = any (v_redriven);
  delete from {schema}.stopped s where s.shard = p_shard and s.run_id = any (v_redriven);

  if p_fresh then
    perform {schema}.forget_children_v1(p_shard, v_now, v_redriven);
    perform {schema}.reopen_streams_v1(p_shard, v_redriven);
  else
    perform {schema}.hear_children_v1(p_shard, v_now, v_redriven);
  end if;
  with life as materialized (
    select r.run_id, r.epoch, {schema}.newest_seq_v1(p_shard, r.run_id) + 1 as seq, r.attempt, r.suspicion
      from unnest(v_rooms) r
  ), fact as (
    insert into {schema}.event (shard, run_id, seq, at, kind, data)
    select p_shard, l.run_id, l.seq, v_now, 'redriven', case when p_fresh then '{"from":"start"}'::json end from life l
  )
  select array_agg((l.run_id, l.epoch, l.seq, l.attempt, 0, 0, l.suspicion, true)::{schema}.room) into v_rooms from life l;
  perform {schema}.put_ready_v1(p_shard, v_now, v_rooms);
end
$$;

-- Tells these runs of children that ended while they did not live. How those ended that did not complete becomes a fact at
-- once: it belongs to the life before, and so is tried again. A child that lives again, with them or before, has nothing to tell yet. One that was
-- asked to stop with its parent and has not ended yet counts as cancelled: what it tells later is not heard.
create function {schema}.hear_children_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
begin
  insert into {schema}.inbox (shard, run_id, id, sent_at, topic, name, data, notes)
  select p_shard, c.parent_id, c.id, p_now, 'child', c.parent_request,
         {schema}.child_end_v1(c.id, c.first_id, coalesce(e.status, 'cancelled'), e.output, e.error),
         {schema}.child_notes_v1(e.output_notes, e.error_notes)
    from unnest(p_runs) p (id)
   cross join lateral (
     select c.parent_id, c.id, c.first_id, c.parent_request
       from {schema}.run c
      where c.shard = p_shard and c.parent_id = p.id and c.continued_as is null
     offset 0) c
    left join lateral (
      select e.status, e.output, e.output_notes, e.error, e.error_notes
        from {schema}.endings e
       where e.shard = p_shard and e.run_id = c.id and c.id <> all (p_runs)
      offset 0) e on true
   where e.status is not null or {schema}.is_stopping_v1(p_shard, c.id, c.parent_id)
  on conflict (shard, run_id, id) do update
     set sent_at = excluded.sent_at, data = excluded.data, notes = excluded.notes
   where inbox.taken_seq is null;

  with unread as materialized (
    select i.place, i.run_id, i.id, i.name, i.data, i.notes,
           case when c.status is null and {schema}.is_stopping_v1(p_shard, i.id, i.run_id) then 'cancelled' else c.status end as status
      from unnest(p_runs) p (id)
     cross join lateral (
       select i.ctid as place, i.run_id, i.id, i.name, i.data, i.notes
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = p.id and i.taken_seq is null and i.topic = 'child'
          for update) i
     cross join lateral (
       select case when c.id <> all (p_runs) then {schema}.end_status_v1(p_shard, c.id) end as status
         from {schema}.run c
        where c.shard = p_shard and c.id = i.id
       offset 0) c
  ), failed as materialized (
    select u.place, u.run_id, u.name, u.data, u.notes, {schema}.newest_seq_v1(p_shard, u.run_id)
             + (row_number() over (partition by u.run_id order by u.id))::integer as seq
      from unread u
     where u.status <> 'completed'
  ), taken as (
    update {schema}.inbox i set taken_seq = f.seq from failed f where i.ctid = f.place
  ), void as (
    delete from {schema}.inbox i using unread u where i.ctid = u.place and u.status is null
  )
  insert into {schema}.event (shard, run_id, seq, at, kind, name, data, notes)
  select p_shard, f.run_id, f.seq, p_now, 'child_ended', f.name, f.data, f.notes from failed f;
end
$$;

-- Keeps what the children of these runs have told, and will tell, from a life that has not started them: it counts as taken.
create function {schema}.forget_children_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
begin
  insert into {schema}.inbox (shard, run_id, id, sent_at, taken_seq, topic, name)
  select p_shard, c.parent_id, c.id, p_now, 0, 'child', c.parent_request
    from unnest(p_runs) p (id)
   cross join lateral (
     select c.parent_id, c.id, c.parent_request
       from {schema}.run c
      where c.shard = p_shard and c.parent_id = p.id
     offset 0) c
  on conflict (shard, run_id, id) do update set taken_seq = 0 where inbox.taken_seq is null;
end
$$;

-- Whether this live child was asked to stop with its parent, in its present life. Index: inbox_pkey.
create function {schema}.is_stopping_v1(p_shard smallint, p_child uuid, p_parent uuid)
returns boolean
language plpgsql stable
as $$
begin
  return exists (select 1 from {schema}.inbox i
                  where i.shard = p_shard and i.run_id = p_child and i.id = {schema}.cancel_from_parent_v1(p_child, p_parent)
                    and i.taken_seq is distinct from 0
                 offset 0);
end
$$;

-- Changes the priority of a run that nobody holds, and the time of one that has not begun or waits to be tried again.
-- p_timed: p_start_ms is to be set; null is now. Answers 'rescheduled', 'begun' (too late for that), 'ended' or 'missing'.
-- Locks: the run's row, then its room. Index: run_pkey, the rooms' primary keys.
create function {schema}.reschedule_run_v1(
  p_shard smallint, p_run uuid, p_priority integer, p_timed boolean, p_start_ms float8, p_data text)
returns text
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_run {schema}.run;
  v_now timestamptz;
  v_start timestamptz;
  v_parked {schema}.parked;
  v_ready {schema}.ready;
  v_room {schema}.room;
begin
  select r.* into v_run from {schema}.run r where r.shard = p_shard and r.id = p_run for no key update;
  if not found then
    return 'missing';
  end if;
  if {schema}.end_status_v1(p_shard, p_run) is not null then
    return 'ended';
  end if;
  perform {schema}.unpack_runs_v1(p_shard, array[p_run]);
  v_now := {clock};
  v_start := coalesce(to_timestamp(p_start_ms / 1000.0), v_now);

  select p.* into v_parked from {schema}.parked p where p.shard = p_shard and p.run_id = p_run for update;
  if found then
    if p_timed and v_parked.epoch > 0 and v_parked.reason <> 'retry' then
      return 'begun';
    end if;
    delete from {schema}.parked p where p.shard = p_shard and p.run_id = p_run;
    v_room := (p_run, v_parked.epoch, v_parked.last_seq + 1, v_parked.attempt, v_parked.failures, v_parked.crashes,
               v_parked.suspicion, false);
  else
    select y.* into v_ready from {schema}.ready y where y.shard = p_shard and y.run_id = p_run for update;
    if not found or (p_timed and v_ready.epoch > 0) then
      return 'begun';
    end if;
    delete from {schema}.ready y where y.shard = p_shard and y.run_id = p_run;
    v_room := (p_run, v_ready.epoch, v_ready.last_seq + 1, v_ready.attempt, v_ready.failures, v_ready.crashes,
               v_ready.suspicion, v_ready.told);
  end if;

  insert into {schema}.event (shard, run_id, seq, at, kind, data)
  values (p_shard, p_run, v_room.last_seq, v_now, 'rescheduled', p_data::json);
  update {schema}.run r
     set priority = coalesce(p_priority, r.priority),
         start_at = case when p_timed and v_room.epoch = 0 then v_start else r.start_at end
   where r.shard = p_shard and r.id = p_run;

  if v_ready.run_id is null and v_parked.reason not in ('delayed', 'retry') then
    insert into {schema}.parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion,
                                 reason, wants, fires)
    values (p_shard, p_run, v_parked.parked_at, v_parked.due_at, v_room.epoch, v_room.last_seq, v_room.attempt,
            v_room.failures, v_room.crashes, v_room.suspicion, v_parked.reason, v_parked.wants, v_parked.fires);
    return 'rescheduled';
  end if;
  if not p_timed then
    v_start := v_parked.due_at;
  elsif v_room.epoch > 0 then
    v_start := least(v_start, v_run.deadline_at);
  else
    v_start := least(v_start, v_run.expires_at, v_run.deadline_at);
  end if;
  if v_start > v_now then
    insert into {schema}.parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion,
                                 reason, wants)
    values (p_shard, p_run, v_now, v_start, v_room.epoch, v_room.last_seq, v_room.attempt, v_room.failures, v_room.crashes,
            v_room.suspicion, coalesce(v_parked.reason, 'delayed'), coalesce(v_parked.wants, '{cancel,pause}'));
    return 'rescheduled';
  end if;
  v_room.told := v_room.told or exists (select 1 from {schema}.inbox i
                                         where i.shard = p_shard and i.run_id = p_run and i.taken_seq is null);
  perform {schema}.put_ready_v1(p_shard, coalesce(v_ready.ready_at, v_now), array[v_room]);
  return 'rescheduled';
end
$$;
