-- Waking: what telling, ending and sweeping have in common. Callers have locked the run rows they pass, in id order.
-- A run may be moved meanwhile by a claim or a due timer (parked to ready to lease): the rooms are visited in that order,
-- so it is met wherever it is. What moves the other way (park) needs the run's row lock, or sets told itself.

-- The parents of these runs; null where none has one. Asked for inside, `is not null` would let the planner read all of run_parent.
create function {schema}.parents_of_v1(p_shard smallint, p_runs uuid[])
returns uuid[]
language plpgsql
as $$
begin
  return (
    select array_agg(c.parent_id)
      from (select r.parent_id from {schema}.run r where r.shard = p_shard and r.id = any (p_runs) offset 0) c
     where c.parent_id is not null);
end
$$;

-- How a run ended, by its last fact; null while it lives. Index: event_pkey, backwards.
create function {schema}.end_status_v1(p_shard smallint, p_run uuid)
returns text
language plpgsql stable
as $$
declare
  v_kind text := (select e.kind from {schema}.event e where e.shard = p_shard and e.run_id = p_run order by e.seq desc limit 1);
begin
  return case when v_kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired') then v_kind end;
end
$$;

-- How the runs that have ended did. The view runs says the same of all, with one look less. Index: run_pkey, event_pkey backwards, stopped_pkey.
create view {schema}.endings as
select r.id as run_id, e.kind::text as status, e.at as ended_at, coalesce(s.epoch, e.epoch, 1) as epoch,
       coalesce(s.attempt, e.attempt) as attempt, case when e.kind = 'completed' then e.data end as output,
       case when e.kind = 'completed' then e.notes end as output_notes, s.error, s.error_notes, r.shard
  from {schema}.run r
 cross join lateral (
   select e.kind, e.at, e.epoch, e.attempt, e.data, e.notes
     from {schema}.event e
    where e.shard = r.shard and e.run_id = r.id
    order by e.seq desc
    limit 1) e
  left join lateral (
    select s.epoch, s.attempt, s.error, s.error_notes
      from {schema}.stopped s
     where e.kind <> 'completed' and s.shard = r.shard and s.run_id = r.id
    offset 0) s on true
 where e.kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired');

-- Ends runs that are in no room any more, and have their last fact: what is kept of those that did not complete, their parents'
-- messages, the hint. Answers the live parents to wake.
-- p_statuses: null where all have completed; then none of the columns behind it is needed.
-- p_epochs, p_attempts: as they were in the room, for a redrive to go on from. p_parents: the parents of these runs, or null.
create function {schema}.finish_runs_v1(
  p_shard smallint, p_now timestamptz, p_runs uuid[], p_parents uuid[], p_statuses text[], p_epochs integer[],
  p_attempts integer[], p_errors text[], p_error_notes text[])
returns uuid[]
language plpgsql
as $$
begin
  if p_statuses is not null then
    insert into {schema}.stopped (shard, run_id, ended_at, epoch, attempt, status, error_code, error, error_notes)
    select p_shard, i.id, p_now, i.epoch, i.attempt, i.status, left(i.error::json ->> 'code', 255), i.error::json,
           i.error_notes::json
      from unnest(p_runs, p_statuses, p_epochs, p_attempts, p_errors, p_error_notes)
           i (id, status, epoch, attempt, error, error_notes)
     where i.status <> 'completed';
  end if;
  perform {schema}.hint_runs_v1('e', p_runs);
  if p_parents is null then
    return null;
  end if;
  return {schema}.tell_parents_v1(p_shard, p_now, p_runs);
end
$$;

-- Tells the live parents of runs that have just ended, unless they end with them. Answers those that it told.
-- A run that goes on as another one has nothing to tell its parent.
-- A child that was redriven ends again: its parent hears of that unless it has heard of the earlier end.
create function {schema}.tell_parents_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns uuid[]
language plpgsql
as $$
declare
  v_parents uuid[];
begin
  with told as (
    insert into {schema}.inbox (shard, run_id, id, sent_at, topic, name, data, notes)
    select p_shard, c.parent_id, c.id, p_now, 'child', c.parent_request,
           {schema}.child_end_v1(c.id, c.first_id, e.status, e.output, e.error),
           {schema}.child_notes_v1(e.output_notes, e.error_notes)
      from (select c.id, c.parent_id, c.first_id, c.parent_request
              from {schema}.run c
             where c.shard = p_shard and c.id = any (p_runs) and c.continued_as is null
            offset 0) c
     cross join lateral (
       select e.status, e.output, e.output_notes, e.error, e.error_notes
         from {schema}.endings e
        where e.shard = p_shard and e.run_id = c.id
       offset 0) e
     where c.parent_id is not null and c.parent_id <> all (p_runs)
       and exists (select 1 from {schema}.run parent
                    where parent.shard = p_shard and parent.id = c.parent_id
                      and {schema}.end_status_v1(p_shard, parent.id) is null
                   offset 0)
    on conflict (shard, run_id, id) do update
       set sent_at = excluded.sent_at, data = excluded.data, notes = excluded.notes
     where inbox.taken_seq is null
    returning run_id
  )
  select array_agg(distinct t.run_id) into v_parents from told t;
  return v_parents;
end
$$;

-- What a parent is told of a child's end. One that returned nothing has no output. One that went on from the run that the
-- parent had started says so.
create function {schema}.child_end_v1(p_id uuid, p_first uuid, p_status text, p_output json, p_error json)
returns json
language plpgsql immutable
as $$
begin
  if p_first is not null then
    return case when p_output is null then json_build_object('id', p_id, 'first', p_first, 'status', p_status, 'error', p_error)
                else json_build_object('id', p_id, 'first', p_first, 'status', p_status, 'output', p_output, 'error', p_error) end;
  end if;
  if p_output is null then
    return json_build_object('id', p_id, 'status', p_status, 'error', p_error);
  end if;
  return json_build_object('id', p_id, 'status', p_status, 'output', p_output, 'error', p_error);
end
$$;

create function {schema}.child_notes_v1(p_output_notes json, p_error_notes json)
returns json
language plpgsql immutable
as $$
begin
  if p_output_notes is null and p_error_notes is null then
    return null;
  end if;
  return json_build_object('output', p_output_notes, 'error', p_error_notes);
end
$$;

-- Makes runs claimable that their caller has just taken out of another room, and says so.
create function {schema}.put_ready_v1(p_shard smallint, p_now timestamptz, p_rooms {schema}.room[])
returns void
language plpgsql
as $$
declare
  v_queues text[];
begin
  if p_rooms is null then
    return;
  end if;
  with put as (
    insert into {schema}.ready (shard, run_id, ready_at, expires_at, epoch, last_seq, attempt, priority, version,
                                failures, crashes, suspicion, told, queue, workflow)
    select p_shard, m.run_id, p_now, case when m.epoch = 0 then least(r.expires_at, r.deadline_at) end, m.epoch, m.last_seq, m.attempt, r.priority, r.version,
           m.failures, m.crashes, m.suspicion, m.told, r.queue, r.workflow
      from unnest(p_rooms) m
     cross join lateral (
       select r.expires_at, r.deadline_at, r.priority, r.version, r.queue, r.workflow
         from {schema}.run r
        where r.shard = p_shard and r.id = m.run_id
       offset 0) r
    returning queue
  )
  select array_agg(distinct p.queue) into v_queues from put p;
  perform {schema}.hint_ready_v1(v_queues);
end
$$;

-- Lets these runs know what is in their inboxes: wakes the parked ones that want it, sets told for the others.
create function {schema}.wake_runs_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_rooms {schema}.room[];
  v_told uuid[];
  v_unbegun uuid[];
  v_leased uuid[];
begin
  if p_runs is null then
    return;
  end if;

  perform {schema}.unpack_runs_v1(p_shard, p_runs);
  -- Parked rows are locked whether or not they are wanted: one that a due timer is moving is then met in ready.
  perform 1 from (select 1 from {schema}.parked p
                   where p.shard = p_shard and p.run_id = any (p_runs)
                   order by p.run_id for update) p;

  if exists (select 1 from {schema}.inbox i
              where i.shard = p_shard and i.run_id = any (p_runs) and i.taken_seq is null
                and i.topic in ('cancel', 'pause', 'resume')) then
    v_unbegun := array(
      select r from unnest(p_runs) r
       where exists (select 1 from {schema}.inbox i
                      where i.shard = p_shard and i.run_id = r and i.taken_seq is null and i.topic = 'cancel' offset 0)
         and (exists (select 1 from {schema}.parked p where p.shard = p_shard and p.run_id = r and p.epoch = 0 offset 0)
              or exists (select 1 from {schema}.ready y where y.shard = p_shard and y.run_id = r and y.epoch = 0 offset 0)));
    if v_unbegun <> '{}' then
      -- Their parents are told: whoever needs several leases locks them together, in id order.
      v_leased := p_runs || {schema}.parents_of_v1(p_shard, v_unbegun);
      perform 1 from (select 1 from {schema}.lease l
                       where l.shard = p_shard and l.run_id = any (v_leased)
                       order by l.run_id for update) l;
      perform {schema}.cancel_unbegun_v1(p_shard, p_now, v_unbegun);
    end if;
    perform {schema}.resume_runs_v1(p_shard, p_now, p_runs);
    perform {schema}.pause_runs_v1(p_shard, p_now, p_runs);
  end if;

  with woken as (
    delete from {schema}.parked p
     where p.shard = p_shard and p.run_id = any (p_runs)
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null
                      and i.topic = any (p.wants) offset 0)
    returning (p.run_id, p.epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion, true)::{schema}.room as room
  )
  select array_agg(w.room) into v_rooms from woken w;
  perform {schema}.put_ready_v1(p_shard, p_now, v_rooms);

  update {schema}.ready y
     set told = true
   where y.shard = p_shard and y.run_id = any (p_runs) and not y.told
     and exists (select 1 from {schema}.inbox i
                  where i.shard = p_shard and i.run_id = y.run_id and i.taken_seq is null offset 0);

  perform 1 from (select 1 from {schema}.lease l
                   where l.shard = p_shard and l.run_id = any (p_runs)
                   order by l.run_id for update) l;
  with told as (
    update {schema}.lease l
       set told = true
     where l.shard = p_shard and l.run_id = any (p_runs)
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = l.run_id and i.taken_seq is null offset 0)
    returning l.run_id
  )
  select array_agg(t.run_id) into v_told from told t;
  perform {schema}.hint_runs_v1('t', v_told);
end
$$;

-- Cancel, pause and resume of runs that nobody holds. What a holder must hear it reads from the inbox instead.

-- The error of a run that was cancelled for a reason, which is its message. It stays json: as text it could hold what
-- Postgres cannot. Null where none was given.
create function {schema}.cancel_error_v1(p_data json)
returns text
language plpgsql immutable
as $$
begin
  if json_typeof(p_data -> 'reason') = 'string' then
    return json_build_object('name', 'PawlError', 'code', 'RUN_CANCELLED', 'message', p_data -> 'reason')::text;
  end if;
  return null;
end
$$;

-- Ends the runs that are cancelled before they began.
create function {schema}.cancel_unbegun_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_ended uuid[];
  v_seqs integer[];
  v_attempts integer[];
  v_errors text[];
begin
  -- Two statements: a due timer may move a run from parked to ready in between.
  with gone as (
    delete from {schema}.parked p
     where p.shard = p_shard and p.run_id = any (p_runs) and p.epoch = 0
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null and i.topic = 'cancel' offset 0)
    returning p.run_id, p.last_seq, p.attempt
  )
  select array_agg(g.run_id), array_agg(g.last_seq), array_agg(g.attempt) into v_ended, v_seqs, v_attempts from gone g;
  with gone as (
    delete from {schema}.ready y
     where y.shard = p_shard and y.run_id = any (p_runs) and y.epoch = 0
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = y.run_id and i.taken_seq is null and i.topic = 'cancel' offset 0)
    returning y.run_id, y.last_seq, y.attempt
  )
  select v_ended || array_agg(g.run_id), v_seqs || array_agg(g.last_seq), v_attempts || array_agg(g.attempt)
    into v_ended, v_seqs, v_attempts from gone g;
  if v_ended is null then
    return;
  end if;

  with first as materialized (
    select g.run_id, g.last_seq, m.place, m.data, m.notes
      from unnest(v_ended, v_seqs) g (run_id, last_seq)
     cross join lateral (
       select i.ctid as place, i.data, i.notes
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = g.run_id and i.taken_seq is null and i.topic = 'cancel'
        order by i.sent_at, i.id
        limit 1
          for update) m
  ), taken as (
    update {schema}.inbox i set taken_seq = f.last_seq + 1
      from first f
     where i.ctid = f.place
  ), written as (
    insert into {schema}.event (shard, run_id, seq, at, kind, data, notes)
    select p_shard, f.run_id, f.last_seq + 1, p_now, 'cancel_requested', f.data, f.notes from first f
     union all
    select p_shard, f.run_id, f.last_seq + 2, p_now, 'cancelled', null, null from first f
  )
  select array_agg({schema}.cancel_error_v1(f.data) order by array_position(v_ended, f.run_id)) into v_errors from first f;

  perform {schema}.wake_runs_v1(p_shard, p_now, {schema}.finish_runs_v1(p_shard, p_now, v_ended,
    {schema}.parents_of_v1(p_shard, v_ended), array_fill('cancelled'::text, array[cardinality(v_ended)]),
    array_fill(0, array[cardinality(v_ended)]), v_attempts, v_errors, null));
end
$$;

-- Lets paused runs go on, or wait for their start again. The pauses up to the newest resume are void.
create function {schema}.resume_runs_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_resumed uuid[];
  v_rooms {schema}.room[];
begin
  with resumed as materialized (
    select distinct on (i.run_id) i.run_id, i.sent_at, i.id
      from {schema}.inbox i
     where i.shard = p_shard and i.run_id = any (p_runs) and i.taken_seq is null and i.topic = 'resume'
       and (exists (select 1 from {schema}.parked p where p.shard = p_shard and p.run_id = i.run_id offset 0)
            or exists (select 1 from {schema}.ready y where y.shard = p_shard and y.run_id = i.run_id offset 0))
     order by i.run_id, i.sent_at desc, i.id desc
  ), void as materialized (
    select i.place
      from resumed r
     cross join lateral (
       select i.ctid as place
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = r.run_id and i.taken_seq is null and i.topic in ('pause', 'resume')
          and (i.sent_at, i.id) <= (r.sent_at, r.id)
          for update) i
  ), taken as (
    update {schema}.inbox i set taken_seq = 0 from void v where i.ctid = v.place
  )
  select array_agg(r.run_id) into v_resumed from resumed r;

  with delayed as materialized (
    select p.place, r.due_at
      from unnest(v_resumed) w (run_id)
     cross join lateral (
       select p.ctid as place
         from {schema}.parked p
        where p.shard = p_shard and p.run_id = w.run_id and p.reason = 'paused' and p.epoch = 0
          for update) p
     cross join lateral (
       select r.start_at, least(r.start_at, r.expires_at, r.deadline_at) as due_at
         from {schema}.run r
        where r.shard = p_shard and r.id = w.run_id
       offset 0) r
     where r.start_at > p_now
  ), still as (
    update {schema}.parked p
       set reason = 'delayed', due_at = d.due_at, wants = '{cancel,pause}', last_seq = p.last_seq + 1, parked_at = p_now
      from delayed d
     where p.ctid = d.place
    returning p.run_id, p.last_seq
  )
  insert into {schema}.event (shard, run_id, seq, at, kind)
  select p_shard, s.run_id, s.last_seq, p_now, 'resumed' from still s;

  with woken as (
    delete from {schema}.parked p
     where p.shard = p_shard and p.run_id = any (v_resumed) and p.reason = 'paused'
    returning p.run_id, p.epoch, p.last_seq + 1 as last_seq, p.attempt, p.failures, p.crashes, p.suspicion
  ), fact as (
    insert into {schema}.event (shard, run_id, seq, at, kind)
    select p_shard, w.run_id, w.last_seq, p_now, 'resumed' from woken w
  )
  select array_agg((w.run_id, w.epoch, w.last_seq, w.attempt, w.failures, w.crashes, w.suspicion, true)::{schema}.room)
    into v_rooms from woken w;
  perform {schema}.put_ready_v1(p_shard, p_now, v_rooms);
end
$$;

-- Holds runs with an unread pause: it stays unread, and keeps them so. A cancel goes before a pause, and a deadline goes on.
create function {schema}.pause_runs_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_paused uuid[];
begin
  v_paused := array(
    select r from unnest(p_runs) r
     where exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = r and i.taken_seq is null and i.topic = 'pause' offset 0)
       and not exists (select 1 from {schema}.inbox i
                        where i.shard = p_shard and i.run_id = r and i.taken_seq is null and i.topic = 'cancel' offset 0));

  -- Two statements: a due timer may move a run from parked to ready in between.
  with still as (
    update {schema}.parked p
       set reason = 'paused', wants = '{cancel,resume}', last_seq = p.last_seq + 1, parked_at = p_now, fires = null,
           due_at = (select r.deadline_at from {schema}.run r where r.shard = p_shard and r.id = p.run_id offset 0)
     where p.shard = p_shard and p.run_id = any (v_paused) and p.reason <> 'paused'
    returning p.run_id, p.last_seq
  )
  insert into {schema}.event (shard, run_id, seq, at, kind)
  select p_shard, s.run_id, s.last_seq, p_now, 'paused' from still s;

  with gone as (
    delete from {schema}.ready y
     where y.shard = p_shard and y.run_id = any (v_paused)
    returning y.run_id, y.epoch, y.last_seq + 1 as last_seq, y.attempt, y.failures, y.crashes, y.suspicion
  ), put as (
    insert into {schema}.parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion,
                                 reason, wants)
    select p_shard, g.run_id, p_now,
           (select r.deadline_at from {schema}.run r where r.shard = p_shard and r.id = g.run_id offset 0), g.epoch, g.last_seq, g.attempt, g.failures, g.crashes, g.suspicion,
           'paused', '{cancel,resume}'::text[]
      from gone g
  )
  insert into {schema}.event (shard, run_id, seq, at, kind)
  select p_shard, g.run_id, g.last_seq, p_now, 'paused' from gone g;
end
$$;
