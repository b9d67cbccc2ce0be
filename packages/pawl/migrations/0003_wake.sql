-- Waking: what telling, ending and sweeping have in common. Callers have locked the run rows they pass, in id order.
-- A run may be moved meanwhile by a claim or a due timer (parked to ready to lease): the rooms are visited in that order,
-- so it is met wherever it is. What moves the other way (park) needs the run's row lock, or sets told itself.

-- The parents of these runs. Asked for inside, `is not null` would let the planner read all of run_parent.
create function {schema}.parents_of_v1(p_shard smallint, p_runs uuid[])
returns uuid[]
language plpgsql
as $$
begin
  return array(
    select c.parent_id
      from (select r.parent_id from {schema}.run r where r.shard = p_shard and r.id = any (p_runs) offset 0) c
     where c.parent_id is not null);
end
$$;

-- Ends runs that are in no room any more: the run's row, its parent's message, the hint. Answers the live parents to wake.
create function {schema}.finish_runs_v1(
  p_shard smallint, p_now timestamptz, p_runs uuid[], p_statuses text[],
  p_outputs text[], p_output_notes text[], p_errors text[], p_error_notes text[])
returns uuid[]
language plpgsql
as $$
declare
  v_parents uuid[];
begin
  with target as materialized (
    select r.place, i.status, i.output, i.output_notes, i.error, i.error_notes
      from unnest(p_runs, p_statuses, p_outputs, p_output_notes, p_errors, p_error_notes)
           i (id, status, output, output_notes, error, error_notes)
     cross join lateral (
       select r.ctid as place
         from {schema}.run r
        where r.shard = p_shard and r.id = i.id and r.status is null
       offset 0) r
  ), done as (
    update {schema}.run r
       set status = t.status, output = t.output::json, output_notes = t.output_notes::json,
           error = t.error::json, error_notes = t.error_notes::json, ended_at = p_now
      from target t
     where r.ctid = t.place
    returning r.id, r.parent_id, r.parent_request, r.status, r.output, r.error
  ), told as (
    insert into {schema}.inbox (shard, run_id, id, sent_at, topic, name, data)
    select p_shard, d.parent_id, d.id, p_now, 'child', d.parent_request,
           json_build_object('id', d.id, 'status', d.status, 'output', d.output, 'error', d.error)
      from done d
     where d.parent_id is not null
       and exists (select 1 from {schema}.run parent
                    where parent.shard = p_shard and parent.id = d.parent_id and parent.status is null
                   offset 0)
       and d.parent_id <> all (p_runs)
    on conflict do nothing
    returning run_id
  )
  select array_agg(distinct t.run_id) into v_parents from told t;

  perform {schema}.hint_runs_v1('e', p_runs);
  return v_parents;
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
    select p_shard, m.run_id, p_now, r.expires_at, m.epoch, m.last_seq, m.attempt, r.priority, r.version,
           m.failures, m.crashes, m.suspicion, m.told, r.queue, r.workflow
      from unnest(p_rooms) m
     cross join lateral (
       select r.expires_at, r.priority, r.version, r.queue, r.workflow
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
begin
  if p_runs is null then
    return;
  end if;

  -- Parked rows are locked whether or not they are wanted: one that a due timer is moving is then met in ready.
  perform 1 from (select 1 from {schema}.parked p
                   where p.shard = p_shard and p.run_id = any (p_runs)
                   order by p.run_id for update) p;

  if exists (select 1 from {schema}.inbox i
              where i.shard = p_shard and i.run_id = any (p_runs) and i.taken_seq is null
                and i.topic in ('cancel', 'pause', 'resume')) then
    perform {schema}.cancel_unbegun_v1(p_shard, p_now, p_runs);
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

-- Ends the runs that are cancelled before they began.
create function {schema}.cancel_unbegun_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_ended uuid[];
  v_seqs integer[];
  v_errors text[];
begin
  -- Two statements: a due timer may move a run from parked to ready in between.
  with gone as (
    delete from {schema}.parked p
     where p.shard = p_shard and p.run_id = any (p_runs) and p.epoch = 0
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null and i.topic = 'cancel' offset 0)
    returning p.run_id, p.last_seq
  )
  select array_agg(g.run_id), array_agg(g.last_seq) into v_ended, v_seqs from gone g;
  with gone as (
    delete from {schema}.ready y
     where y.shard = p_shard and y.run_id = any (p_runs) and y.epoch = 0
       and exists (select 1 from {schema}.inbox i
                    where i.shard = p_shard and i.run_id = y.run_id and i.taken_seq is null and i.topic = 'cancel' offset 0)
    returning y.run_id, y.last_seq
  )
  select v_ended || array_agg(g.run_id), v_seqs || array_agg(g.last_seq) into v_ended, v_seqs from gone g;
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
  -- The reason is the error's message. It stays json: as text it could hold what Postgres cannot.
  select array_agg(f.run_id),
         array_agg(case json_typeof(f.data -> 'reason') when 'string' then
           json_build_object('name', 'PawlError', 'code', 'RUN_CANCELLED', 'message', f.data -> 'reason')::text end)
    into v_ended, v_errors
    from first f;

  perform {schema}.wake_runs_v1(p_shard, p_now, {schema}.finish_runs_v1(p_shard, p_now, v_ended,
    array_fill('cancelled'::text, array[cardinality(v_ended)]), null, null, v_errors, null));
end
$$;

-- Lets paused runs go on. The pauses up to the newest resume are void.
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

-- Holds runs with an unread pause: it stays unread, and keeps them so. A cancel goes before a pause.
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
       set reason = 'paused', due_at = null, wants = '{cancel,resume}', last_seq = p.last_seq + 1, parked_at = p_now
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
    insert into {schema}.parked (shard, run_id, parked_at, epoch, last_seq, attempt, failures, crashes, suspicion,
                                 reason, wants)
    select p_shard, g.run_id, p_now, g.epoch, g.last_seq, g.attempt, g.failures, g.crashes, g.suspicion,
           'paused', '{cancel,resume}'::text[]
      from gone g
  )
  insert into {schema}.event (shard, run_id, seq, at, kind)
  select p_shard, g.run_id, g.last_seq, p_now, 'paused' from gone g;
end
$$;
