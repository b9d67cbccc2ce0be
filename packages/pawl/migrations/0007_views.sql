-- What people see. Statuses follow from the room that holds the run. Rooms are looked up run by run: joined, they are read
-- as a whole for each page of a list when the statistics are missing.
create view {schema}.runs as
select r.id, r.workflow, r.version, r.queue, r.priority,
       case when r.status is not null then r.status
            when l.run_id is not null then 'running'
            when y.run_id is not null then 'pending'
            when p.reason = 'delayed' then 'pending'
            when p.reason in ('waiting', 'retry') then 'waiting'
            else p.reason end as status,
       r.key, r.tags, r.parent_id, coalesce(r.root_id, r.id) as root_id, r.depth,
       coalesce(l.epoch, y.epoch, p.epoch, r.epoch) as epoch,
       coalesce(l.attempt, y.attempt, p.attempt, r.attempt) as attempt,
       coalesce(l.failures, y.failures, p.failures) as failures,
       coalesce(l.crashes, y.crashes, p.crashes) as crashes,
       l.worker_id, l.claimed_at, p.reason as park_reason, p.due_at, p.wants,
       r.created_at, r.start_at, r.expires_at, r.deadline_at, r.ended_at,
       r.input, r.input_notes, r.output, r.output_notes, r.error, r.error_notes, r.shard
  from {schema}.run r
  left join lateral (
    select y.run_id, y.epoch, y.attempt, y.failures, y.crashes
      from {schema}.ready y
     where r.status is null and y.shard = r.shard and y.run_id = r.id
    offset 0) y on true
  left join lateral (
    select l.run_id, l.epoch, l.attempt, l.failures, l.crashes, l.worker_id, l.claimed_at
      from {schema}.lease l
     where r.status is null and l.shard = r.shard and l.run_id = r.id
    offset 0) l on true
  left join lateral (
    select p.run_id, p.epoch, p.attempt, p.failures, p.crashes, p.reason, p.due_at, p.wants
      from {schema}.parked p
     where r.status is null and p.shard = r.shard and p.run_id = r.id
    offset 0) p on true;

-- Every finished step, with how long it took.
create view {schema}.steps as
select e.run_id, e.seq, e.name, e.kind, e.attempt, e.began_at, e.at as ended_at, e.data, e.notes, e.shard
  from {schema}.event e
 where e.kind in ('step_completed', 'step_failed');

-- Every finished attempt, once and for ever: how it went, when, and in whose hands. began_at is when the worker that finished
-- it took the run: an attempt may sleep and go on elsewhere.
create view {schema}.attempts as
select e.run_id, e.seq, e.attempt,
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
