-- What people see: public, and described column by column in docs/sql.md. Statuses follow from the room that holds the run.
-- Rooms are looked up run by run: joined, they are read as a whole for each page of a list when the statistics are missing.
create view {schema}.runs as
select r.id, r.workflow, r.version, r.queue, r.priority,
       case when e.status is not null then e.status
            when l.run_id is not null or k.worker_id is not null then 'running'
            when y.run_id is not null or k.ready_at is not null or p.reason = 'delayed' then 'pending'
            when p.reason in ('waiting', 'retry') then 'waiting'
            else p.reason end as status,
       r.key, r.tags, r.parent_id, coalesce(r.root_id, r.id) as root_id, r.depth, r.forked_from,
       coalesce(r.first_id, r.id) as first_id, r.continued_as,
       coalesce(l.epoch, y.epoch, k.epoch, p.epoch, s.epoch, e.epoch, 1) as epoch,
       coalesce(l.last_seq, y.last_seq, k.zero, p.last_seq) as last_seq,
       coalesce(l.attempt, y.attempt, k.zero + 1, p.attempt, s.attempt, e.attempt) as attempt,
       coalesce(l.failures, y.failures, k.zero, p.failures)::smallint as failures,
       coalesce(l.crashes, y.crashes, k.zero, p.crashes)::smallint as crashes,
       coalesce(l.worker_id, k.worker_id) as worker_id, w.host, w.pid, coalesce(l.claimed_at, k.claimed_at) as claimed_at,
       coalesce(l.began_at, k.began_at) as began_at, p.reason::text as park_reason, p.due_at, p.wants,
       r.created_at, r.start_at, r.expires_at, r.deadline_at,
       coalesce(e.ended_at, l.claimed_at, y.ready_at, k.claimed_at, k.ready_at, p.parked_at) as moved_at,
       e.ended_at, e.ended_at - r.created_at as duration,
       s.error ->> 'code' as error_code, s.error ->> 'message' as error_message,
       r.input, r.input_notes, case when e.status = 'completed' then e.data end as output,
       case when e.status = 'completed' then e.notes end as output_notes, s.error, s.error_notes, r.retry, r.shard
  from {schema}.run r
  left join lateral (
    select e.kind::text as status, e.at as ended_at, e.epoch, e.attempt, e.data, e.notes
      from (select e.kind, e.at, e.epoch, e.attempt, e.data, e.notes
              from {schema}.event e
             where e.shard = r.shard and e.run_id = r.id
             order by e.seq desc
             limit 1) e
     where e.kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired')) e on true
  left join lateral (
    select s.epoch, s.attempt, s.error, s.error_notes
      from {schema}.stopped s
     where e.status <> 'completed' and s.shard = r.shard and s.run_id = r.id
    offset 0) s on true
  left join lateral (
    select y.run_id, y.epoch, y.last_seq, y.attempt, y.failures, y.crashes, y.ready_at
      from {schema}.ready y
     where e.status is null and y.shard = r.shard and y.run_id = r.id
    offset 0) y on true
  left join lateral (
    select k.ready_at, k.worker_id, k.claimed_at, k.began_at, (k.worker_id is not null)::integer as epoch, 0 as zero
      from (select k.ready_at, k.run_ids, k.worker_id, k.claimed_at, k.began_at
              from {schema}.pack k
             where e.status is null and k.shard = r.shard and k.id = r.pack_id
            offset 0) k
     where r.id = any (k.run_ids)) k on true
  left join lateral (
    select l.run_id, l.epoch, l.last_seq, l.attempt, l.failures, l.crashes, l.worker_id, l.claimed_at, l.began_at
      from {schema}.lease l
     where e.status is null and l.shard = r.shard and l.run_id = r.id
    offset 0) l on true
  left join lateral (
    select p.run_id, p.epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.reason, p.due_at, p.wants, p.parked_at
      from {schema}.parked p
     where e.status is null and p.shard = r.shard and p.run_id = r.id
    offset 0) p on true
  left join lateral (
    select w.host, w.pid from {schema}.worker w where w.id = coalesce(l.worker_id, k.worker_id) offset 0) w on true;

-- The runs that have not ended, by the rooms alone: those that have ended cost nothing, however many there are. What the room
-- does not say is looked up where it is asked for. Index: parked_reason by park_reason, parked_due by shard and due_at.
create view {schema}.live_runs as
select y.run_id as run_id, y.workflow::text as workflow, y.version as version, y.queue::text as queue, 'pending'::text as status,
       null::text as park_reason, y.ready_at as moved_at, null::timestamptz as due_at, null::uuid as worker_id, y.shard as shard
  from {schema}.ready y
 union all
select u.run_id as run_id, k.workflow::text as workflow, k.version as version, k.queue::text as queue,
       case when k.worker_id is null then 'pending' else 'running' end as status, null::text as park_reason,
       coalesce(k.claimed_at, k.ready_at) as moved_at, null::timestamptz as due_at, k.worker_id as worker_id, k.shard as shard
  from {schema}.pack k
 cross join unnest(k.run_ids) u (run_id)
 union all
select l.run_id as run_id, r.workflow as workflow, r.version as version, r.queue as queue, 'running'::text as status,
       null::text as park_reason, l.claimed_at as moved_at, null::timestamptz as due_at, l.worker_id as worker_id, l.shard as shard
  from {schema}.lease l
 cross join lateral (
   select r.workflow, r.version, r.queue from {schema}.run r where r.shard = l.shard and r.id = l.run_id offset 0) r
 union all
select p.run_id as run_id, r.workflow as workflow, r.version as version, r.queue as queue,
       case p.reason when 'delayed' then 'pending' when 'retry' then 'waiting' else p.reason end as status,
       p.reason::text as park_reason, p.parked_at as moved_at, p.due_at as due_at, null::uuid as worker_id, p.shard as shard
  from {schema}.parked p
 cross join lateral (
   select r.workflow, r.version, r.queue from {schema}.run r where r.shard = p.shard and r.id = p.run_id offset 0) r;

-- Runs by their tags, a row for each tag. Index: tag_pkey, run_pkey.
create view {schema}.tagged_runs as
select t.tag, t.run_id, r.workflow, r.version, r.queue, r.status, r.key, r.created_at, r.ended_at, r.error_code, r.error_message,
       t.shard
  from {schema}.tag t
 cross join lateral (
   select r.workflow, r.version, r.queue, r.status, r.key, r.created_at, r.ended_at, r.error_code, r.error_message
     from {schema}.runs r
    where r.shard = t.shard and r.id = t.run_id
   offset 0) r;

-- Every finished step, with how long it took.
create view {schema}.steps as
select e.run_id, e.seq::integer as seq, e.name, e.kind::text as kind, e.attempt, e.began_at, e.at as ended_at, e.at - e.began_at as duration,
       case when e.kind = 'step_failed' then e.data ->> 'code' end as error_code,
       case when e.kind = 'step_failed' then e.data ->> 'message' end as error_message,
       e.data, e.notes, e.shard
  from {schema}.event e
 where e.kind in ('step_completed', 'step_failed');

-- Every finished attempt, once and for ever: how it went, when, and in whose hands. began_at is when the worker that finished
-- it took the run: an attempt may sleep and go on elsewhere.
create view {schema}.attempts as
select e.run_id, e.seq::integer as seq, e.attempt,
       case e.kind when 'attempt_failed' then 'failed' when 'attempt_crashed' then 'crashed' else e.kind end as outcome,
       e.kind = 'attempt_failed'
         or e.kind = 'attempt_crashed'
            and not exists (select 1 from {schema}.event f
                             where f.shard = e.shard and f.run_id = e.run_id and f.seq = e.seq + 1 and f.kind = 'failed'
                            offset 0) as will_retry,
       e.began_at, e.at as ended_at,
       case when e.kind = 'attempt_crashed' then 'WORKER_CRASHED'
            when e.kind in ('attempt_failed', 'failed') then e.data ->> 'code' end as error_code,
       case when e.kind in ('attempt_failed', 'failed') then e.data ->> 'message' end as error_message,
       e.worker_id, w.host, w.pid, e.data, e.notes, e.shard
  from {schema}.event e
  left join lateral (
    select w.host, w.pid from {schema}.worker w where w.id = e.worker_id offset 0) w on true
 where e.kind in ('attempt_failed', 'attempt_crashed', 'completed', 'failed', 'cancelled', 'timed_out')
   and e.attempt is not null;

-- What a run has done and been given: steps, children and signals, once they have ended. A child's id is told with its end,
-- so its row is found by that: looked for by name, its start would cost the whole history each time.
create view {schema}.activity_log as
select e.run_id, e.seq::integer as seq,
       case e.kind when 'child_ended' then 'child' when 'signal_received' then 'signal' else 'step' end as kind,
       e.name, e.attempt, coalesce(e.began_at, c.created_at, e.at) as began_at, e.at as ended_at,
       case when e.kind <> 'signal_received' then e.at - coalesce(e.began_at, c.created_at) end as duration,
       c.id as child_id, c.input, c.input_notes,
       case e.kind when 'child_ended' then e.data -> 'output'
                   when 'step_failed' then null
                   else e.data end as result,
       case e.kind when 'child_ended' then case when e.data ->> 'error' is not null then e.data -> 'error' end
                   when 'step_failed' then e.data end as error,
       e.notes, e.shard
  from {schema}.event e
  left join lateral (
    select c.id, c.created_at, c.input, c.input_notes
      from {schema}.run c
     where c.shard = e.shard and c.id = case when e.kind = 'child_ended' then (e.data ->> 'id')::uuid end
    offset 0) c on true
 where e.kind in ('step_completed', 'step_failed', 'child_ended', 'signal_received') and e.name is not null;

-- An instant for people to read, the same in every session.
create function {schema}.instant_text_v1(p_at timestamptz)
returns text
language plpgsql stable
set search_path = pg_catalog
as $$
begin
  return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
end
$$;

-- Whether a timer is a wait's timeout, by its name; others are sleeps. As familyOfTimer in core/request-key.ts.
create function {schema}.is_timeout_v1(p_name text)
returns boolean
language plpgsql immutable
set search_path = pg_catalog
as $$
begin
  return regexp_replace(p_name, '^(?:(?:\\.|[^\\/])*/)*', '') like 'signal:%';
end
$$;

-- A fact in words. What is encrypted is left out.
create function {schema}.event_text_v1(p_kind text, p_name text, p_due_at timestamptz, p_data json)
returns text
language plpgsql stable
set search_path = pg_catalog
as $$
declare
  v_why text := case when p_kind in ('step_failed', 'step_retried', 'undo_retried', 'undo_failed', 'blocked', 'attempt_failed',
                                     'failed')
                     then coalesce(': ' || (p_data ->> 'message'), '') end;
begin
  return case p_kind
    when 'step_intended' then 'step ' || p_name || ' is about to run'
    when 'step_completed' then 'step ' || p_name || ' completed'
    when 'step_failed' then 'step ' || p_name || ' failed' || v_why
    when 'step_retried' then 'step ' || p_name || ' is tried again at ' || {schema}.instant_text_v1(p_due_at) || v_why
    when 'step_progressed' then 'step ' || p_name || ' said how far it has come'
    when 'commit_lost' then 'transaction ' || p_name || ' did not commit, and is tried again'
    when 'timer_set' then case when {schema}.is_timeout_v1(p_name) then p_name || ' is waited for until '
                               else p_name || ' until ' end || {schema}.instant_text_v1(p_due_at)
    when 'timer_fired' then case when {schema}.is_timeout_v1(p_name) then p_name || ' did not come in time'
                                 else p_name || ' is over' end
    when 'signal_received' then case when p_name is not null then p_name || ' was received'
                                     else 'a signal was dropped' || coalesce(': ' || (p_data ->> 'dropped'), '') end
    when 'child_started' then 'child ' || p_name || ' started'
    when 'child_ended' then 'child ' || p_name || ' ' || coalesce(p_data ->> 'status', 'ended')
                            || coalesce(': ' || (p_data -> 'error' ->> 'message'), '')
    when 'published' then {schema}.published_key_v1(p_name) || ' was published'
    when 'update_received' then p_name || ' was received'
    when 'update_answered' then coalesce(p_name || ' was ', 'an update was ') || (p_data ->> 'status')
                                || coalesce(': ' || (p_data -> 'error' ->> 'message'), '')
    when 'stream_written' then p_name || case when p_data is null then ' was written' else ' was refused' end
    when 'cancel_requested' then case when p_name = 'deadline' then 'the deadline has passed'
                                      else 'cancel was asked for' || coalesce(': ' || (p_data ->> 'reason'), '') end
    when 'paused' then 'paused'
    when 'resumed' then 'resumed'
    when 'blocked' then 'blocked' || v_why
    when 'attempt_failed' then 'the attempt failed' || v_why
    when 'attempt_crashed' then 'the worker died'
    when 'input_parsed' then 'the input was parsed'
    when 'rescheduled' then 'rescheduled'
    when 'undo_began' then 'what was done is undone'
    when 'undo_retried' then 'the undo of step ' || p_name || ' is tried again at ' || {schema}.instant_text_v1(p_due_at) || v_why
    when 'undo_completed' then 'step ' || p_name || ' was undone'
    when 'undo_failed' then 'step ' || p_name || ' could not be undone' || v_why
    when 'forked' then 'forked from run ' || (p_data ->> 'from')
    when 'redriven' then case when p_data ->> 'from' = 'start' then 'redriven from the start' else 'redriven' end
    when 'failed' then 'failed' || v_why
    when 'timed_out' then 'timed out'
    else p_kind end;
end
$$;

-- Every fact as it was recorded, over all runs. Index: event_pkey by run, event_at by time.
create view {schema}.events as
select e.run_id, e.seq::integer as seq, e.at, {schema}.event_text_v1(e.kind, e.name, e.due_at, e.data) as what, e.kind::text as kind, e.name, e.attempt,
       e.began_at, e.due_at, e.worker_id, e.data, e.notes, e.shard
  from {schema}.event e;

-- The story of a run: its start, its facts, and when that began which a fact tells the end of. Order by at, seq, kind.
create view {schema}.timeline as
select r.id as run_id, 0 as seq, r.created_at as at, 'started on queue ' || r.queue as what, 'started'::text as kind,
       null::text as name, null::integer as attempt, null::uuid as worker_id, r.input as data, r.input_notes as notes,
       r.shard as shard
  from {schema}.run r
 union all
select e.run_id as run_id, e.seq::integer as seq, e.at as at, {schema}.event_text_v1(e.kind, e.name, e.due_at, e.data) as what,
       e.kind::text as kind, e.name as name, e.attempt as attempt, e.worker_id as worker_id, e.data as data, e.notes as notes,
       e.shard as shard
  from {schema}.event e
 union all
select e.run_id as run_id, e.seq::integer as seq, e.began_at as at, 'step ' || e.name || ' began' as what,
       'step_began'::text as kind, e.name as name, e.attempt as attempt, e.worker_id as worker_id, null::json as data,
       null::json as notes, e.shard as shard
  from {schema}.event e
 where e.kind in ('step_completed', 'step_failed', 'step_retried') and e.began_at is not null
 union all
select e.run_id as run_id, e.seq::integer as seq, e.began_at as at, 'a worker began to execute it'::text as what,
       'execution_began'::text as kind, null::text as name, e.attempt as attempt, e.worker_id as worker_id, null::json as data,
       null::json as notes, e.shard as shard
  from {schema}.event e
 where e.kind not in ('step_completed', 'step_failed', 'step_retried') and e.attempt is not null and e.began_at is not null
 union all
select l.run_id as run_id, null::integer as seq, l.began_at as at, 'a worker began to execute it'::text as what,
       'execution_began'::text as kind, null::text as name, l.attempt as attempt, l.worker_id as worker_id, null::json as data,
       null::json as notes, l.shard as shard
  from {schema}.lease l
 where l.began_at is not null
 union all
select r.id as run_id, null::integer as seq, k.began_at as at, 'a worker began to execute it'::text as what,
       'execution_began'::text as kind, null::text as name, 1 as attempt, k.worker_id as worker_id, null::json as data,
       null::json as notes, r.shard as shard
  from {schema}.run r
 cross join lateral (
   select k.run_ids, k.worker_id, k.began_at from {schema}.pack k where k.shard = r.shard and k.id = r.pack_id offset 0) k
 where r.id = any (k.run_ids) and k.began_at is not null;

-- Every timer that was set: sleeps, and timeouts of waits. The fact that answers one most often follows soon.
create view {schema}.timers as
select e.run_id, e.seq::integer as seq, e.name, case when {schema}.is_timeout_v1(e.name) then 'timeout' else 'sleep' end as kind,
       e.at as set_at, e.due_at as fire_at,
       case when a.kind = 'timer_fired' then 'fired'
            when a.kind is not null or d.status is not null then 'void'
            else 'set' end as status,
       case when a.kind = 'timer_fired' then a.at end as fired_at,
       e.shard
  from {schema}.event e
  left join lateral (
    select a.kind, a.at
      from {schema}.event a
     where a.shard = e.shard and a.run_id = e.run_id and a.seq > e.seq and a.name = e.name
       and (a.kind in ('timer_fired', 'signal_received') or a.kind = 'withdrawn' and a.data ->> 'family' <> 'child')
     order by a.seq
     limit 1) a on true
  left join lateral (
    select d.status from {schema}.endings d where d.shard = e.shard and d.run_id = e.run_id offset 0) d on true
 where e.kind = 'timer_set';

-- What parked runs wait for: one row for each thing that would let one go on.
create view {schema}.waits as
select p.run_id, r.workflow, r.version, r.queue, c.kind, c.name, c.child_id, p.parked_at as since_at, p.due_at as until_at,
       p.shard
  from {schema}.parked p
 cross join lateral (
   select r.workflow, r.version, r.queue, r.deadline_at
     from {schema}.run r
    where r.shard = p.shard and r.id = p.run_id
   offset 0) r
 cross join lateral (
   select case p.reason when 'delayed' then 'start' when 'retry' then 'retry' when 'paused' then 'resume' else 'code' end as kind,
          null::text as name, null::uuid as child_id
    where p.reason <> 'waiting'
    union all
   select case when p.due_at = r.deadline_at then 'deadline' else 'timer' end as kind, null::text as name, null::uuid as child_id
    where p.reason = 'waiting' and p.due_at is not null
    union all
   select 'signal'::text as kind, substr(t.topic, 8) as name, null::uuid as child_id
     from unnest(p.wants) t (topic)
    where p.reason = 'waiting' and t.topic like 'signal:%'
    union all
   select 'update'::text as kind, substr(t.topic, 8) as name, null::uuid as child_id
     from unnest(p.wants) t (topic)
    where p.reason = 'waiting' and t.topic like 'update:%'
    union all
   select 'child'::text as kind, k.workflow as name, k.id as child_id
     from (select k.id, k.workflow
             from {schema}.run k
            where k.parent_id = p.run_id and k.shard = p.shard
              and not exists (select 1 from {schema}.endings d where d.shard = k.shard and d.run_id = k.id offset 0)
           offset 0) k
    where p.reason = 'waiting' and 'child' = any (p.wants)) c;

-- Runs that failed, and can be redriven. Index: stopped_status by status and age, stopped_pkey, run_pkey, event_pkey.
create view {schema}.dead_letters as
select s.run_id, r.workflow, r.version, r.queue, r.key, r.tags, s.error_code, s.error ->> 'message' as error_message,
       s.attempt as attempts, r.created_at, s.ended_at as failed_at, e.worker_id, w.host, w.pid,
       r.input, r.input_notes, s.error, s.error_notes, s.shard
  from {schema}.stopped s
 cross join lateral (
   select r.workflow, r.version, r.queue, r.key, r.tags, r.created_at, r.input, r.input_notes
     from {schema}.run r
    where r.shard = s.shard and r.id = s.run_id
   offset 0) r
  left join lateral (
    select e.worker_id
      from (select e.worker_id, e.seq
              from {schema}.event e
             where e.shard = s.shard and e.run_id = s.run_id
             order by e.seq desc
             limit 2) e
     where e.worker_id is not null
     order by e.seq desc
     limit 1) e on true
  left join lateral (
    select w.host, w.pid from {schema}.worker w where w.id = e.worker_id offset 0) w on true
 where s.status = 'failed';

-- Who is there, and how they fare. Index: worker_pkey, lease_worker, pack_worker, worker_sample_pkey.
create view {schema}.workers as
select w.id, w.host, w.pid, w.queues, w.workflows, w.concurrency, w.started_at, w.heard_at,
       w.heard_at + w.lease_ms * interval '1 millisecond' as expires_at, w.ended_at,
       w.ended_at is null and w.heard_at > {clock} - w.lease_ms * interval '1 millisecond' as is_alive,
       l.held, s.at as sample_at, s.memory_bytes, s.cpu_ratio, s.lag_ms, w.long_steps, w.settings
  from {schema}.worker w
 cross join lateral (
   select (select count(*) from {schema}.lease l where l.worker_id = w.id)
          + (select coalesce(sum(cardinality(k.run_ids)), 0) from {schema}.pack k where k.worker_id = w.id) as held) l
  left join lateral (
    select s.at, s.memory_bytes, s.cpu_ratio, s.lag_ms
      from {schema}.worker_sample s
     where s.worker_id = w.id
     order by s.at desc
     limit 1) s on true;

-- Steps that were running for longer than a heartbeat when their worker was last heard of.
create view {schema}.running_steps as
select s."runId" as run_id, s.step as name, to_timestamp(s."beganAt" / 1000.0) as began_at, w.id as worker_id, w.host, w.pid,
       w.heard_at, s.progress, s."progressNotes" as progress_notes
  from {schema}.worker w
 cross join lateral json_to_recordset(w.long_steps)
            as s ("runId" uuid, step text, "beganAt" float8, progress json, "progressNotes" json)
 where w.ended_at is null and w.long_steps is not null;

-- Public. The bound between the ids of runs made before this instant, and of those made at it or later: a time range that the
-- primary key serves.
create function {schema}.id_at(at timestamptz)
returns uuid
language plpgsql immutable
set search_path = pg_catalog
as $$
begin
  -- Within 48 bits, also where it is infinite.
  return lpad(to_hex(floor(least(281474976710655, greatest(0, extract(epoch from at) * 1000)))::bigint), 12, '0')
    || '00000000000000000000';
end
$$;

-- Public. The run that has this idempotency key. Index: key_pkey.
create function {schema}.id_of(key text)
returns uuid
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  return (select k.run_id from {schema}.key k where k.key = id_of.key limit 1);
end
$$;

-- Public. What a live run waits for, in words; null for one that has ended, or that is not there.
-- Not a column of runs: it takes 60 to 100 µs a run, which every page of a list would pay.
-- Index: run_pkey, run_parent, event_pkey, the rooms' primary keys, worker_pkey, worker_unswept.
create function {schema}.why(run uuid)
returns text
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := {clock};
  v_run {schema}.run;
  v_pack {schema}.pack;
  v_ready {schema}.ready;
  v_lease {schema}.lease;
  v_parked {schema}.parked;
  v_worker {schema}.worker;
  v_able text;
  v_alive bigint;
  v_steps text;
begin
  select r.* into v_run from {schema}.run r where r.id = why.run;
  if v_run.id is null or {schema}.end_status_v1(v_run.shard, v_run.id) is not null then
    return null;
  end if;

  select k.id, k.ready_at, k.worker_id, k.claimed_at into v_pack.id, v_pack.ready_at, v_pack.worker_id, v_pack.claimed_at
    from {schema}.pack k
   where k.id = v_run.pack_id and k.shard = v_run.shard and v_run.id = any (k.run_ids);
  select l.worker_id, l.claimed_at into v_lease.worker_id, v_lease.claimed_at
    from {schema}.lease l where l.run_id = v_run.id and l.shard = v_run.shard;
  if not found then
    v_lease.worker_id := v_pack.worker_id;
    v_lease.claimed_at := v_pack.claimed_at;
  end if;
  if v_lease.worker_id is not null then
    select w.* into v_worker from {schema}.worker w where w.id = v_lease.worker_id;
    if v_worker.ended_at is not null or v_worker.heard_at <= v_now - v_worker.lease_ms * interval '1 millisecond' then
      return format('another worker to take it over: worker %s on host %s (pid %s) was last heard of at %s',
                    v_worker.id, v_worker.host, v_worker.pid, {schema}.instant_text_v1(v_worker.heard_at));
    end if;
    select string_agg(format('%s since %s', s.step, {schema}.instant_text_v1(to_timestamp(s."beganAt" / 1000.0))), ', '
                      order by s."beganAt")
      into v_steps
      from json_to_recordset(v_worker.long_steps) as s ("runId" uuid, step text, "beganAt" float8)
     where s."runId" = v_run.id;
    return format('worker %s on host %s (pid %s), which has held it since %s', v_worker.id, v_worker.host, v_worker.pid,
                  {schema}.instant_text_v1(v_lease.claimed_at)) || coalesce('; step ' || v_steps, '');
  end if;

  v_able := format('for %s@%s on queue "%s"', v_run.workflow, v_run.version, v_run.queue);
  select y.* into v_ready from {schema}.ready y where y.run_id = v_run.id and y.shard = v_run.shard;
  if v_pack.id is not null then
    v_ready.ready_at := v_pack.ready_at;
    v_ready.suspect := false;
  end if;
  if v_ready.ready_at is not null then
    if exists (select 1 from {schema}.queue q where q.name = v_run.queue and q.paused_at is not null) then
      return format('a resume of queue "%s"', v_run.queue);
    end if;
    select count(*) into v_alive
      from {schema}.worker w
     where w.swept_at is null and w.ended_at is null
       and w.heard_at > v_now - w.lease_ms * interval '1 millisecond'
       and v_run.queue = any (w.queues) and v_run.workflow || '@' || v_run.version = any (w.workflows);
    if v_alive = 0 then
      return 'a worker ' || v_able || ': there is none';
    end if;
    return format('its turn since %s: %s', {schema}.instant_text_v1(v_ready.ready_at),
                  case v_alive when 1 then 'one worker lives ' else v_alive || ' workers live ' end) || v_able
           || case when v_ready.suspect then '; its last one died, so it is tried alone' else '' end;
  end if;

  select p.* into v_parked from {schema}.parked p where p.run_id = v_run.id and p.shard = v_run.shard;
  case v_parked.reason
    when 'delayed' then
      return 'its start at ' || {schema}.instant_text_v1(v_parked.due_at);
    when 'retry' then
      return format('attempt %s at %s', v_parked.attempt, {schema}.instant_text_v1(v_parked.due_at))
             || coalesce(', after ' || (select e.data ->> 'message' from {schema}.event e
                                         where e.run_id = v_run.id and e.shard = v_run.shard and e.kind = 'attempt_failed'
                                         order by e.seq desc limit 1), '');
    when 'paused' then
      return 'a resume: paused since ' || {schema}.instant_text_v1(v_parked.parked_at);
    when 'blocked' then
      return 'code that fits its history: tried again at ' || {schema}.instant_text_v1(v_parked.due_at)
             || coalesce('. ' || (select e.data ->> 'message' from {schema}.event e
                                   where e.run_id = v_run.id and e.shard = v_run.shard and e.kind = 'blocked'
                                   order by e.seq desc limit 1), '');
    else
      -- Its children may be thousands: a few stand for all.
      return coalesce(
        (select string_agg(t.words, ' or ')
           from (select t.words
                   from (select case when t.topic like 'signal:%' then 'signal "' || substr(t.topic, 8) || '"'
                                     when t.topic like 'update:%' then 'update "' || substr(t.topic, 8) || '"' end as words
                           from unnest(v_parked.wants) t (topic)
                          union all
                         (select 'child ' || k.workflow || ' ' || k.id
                            from {schema}.run k
                           where k.parent_id = v_run.id and k.shard = v_run.shard
                             and {schema}.end_status_v1(k.shard, k.id) is null
                             and 'child' = any (v_parked.wants)
                           limit 3)
                          union all
                         select case when v_parked.due_at = v_run.deadline_at then 'its deadline at ' else 'the time ' end
                                || {schema}.instant_text_v1(v_parked.due_at)) t
                  where t.words is not null) t),
        'nothing: it is on its way from one room to another');
  end case;
end
$$;
