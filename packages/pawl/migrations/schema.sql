create schema "pawl";

create domain pawl.end_status as text constraint end_status_check CHECK ((VALUE = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text, 'expired'::text])));

create domain pawl.event_kind as text constraint event_kind_check CHECK ((VALUE = ANY (ARRAY['step_completed'::text, 'completed'::text, 'timer_fired'::text, 'timer_set'::text, 'signal_received'::text, 'child_started'::text, 'child_ended'::text, 'step_intended'::text, 'step_failed'::text, 'step_retried'::text, 'step_progressed'::text, 'commit_lost'::text, 'withdrawn'::text, 'patched'::text, 'published'::text, 'update_received'::text, 'update_answered'::text, 'stream_written'::text, 'cancel_requested'::text, 'paused'::text, 'resumed'::text, 'blocked'::text, 'attempt_failed'::text, 'attempt_crashed'::text, 'input_parsed'::text, 'rescheduled'::text, 'undo_began'::text, 'undo_retried'::text, 'undo_completed'::text, 'undo_failed'::text, 'forked'::text, 'redriven'::text, 'continued'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text, 'expired'::text])));

create domain pawl.ordinal as integer constraint ordinal_check CHECK ((VALUE > 0));

create domain pawl.packed_runs as uuid[] constraint packed_runs_check CHECK (((cardinality(VALUE) >= 1) AND (cardinality(VALUE) <= 64)));

create domain pawl.park_reason as text constraint park_reason_check CHECK ((VALUE = ANY (ARRAY['delayed'::text, 'waiting'::text, 'retry'::text, 'paused'::text, 'blocked'::text])));

create type pawl.held as (
  runs            uuid[],
  told            uuid[]
);

create type pawl.place as (
  priority        integer,
  ready_at        timestamp with time zone,
  run_id          uuid
);

create type pawl.room as (
  run_id          uuid,
  epoch           integer,
  last_seq        integer,
  attempt         integer,
  failures        smallint,
  crashes         smallint,
  suspicion       smallint,
  told            boolean
);

create table pawl.audit (
  id              uuid not null,
  at              timestamp with time zone not null,
  actor           text not null,
  action          text not null,
  run_id          uuid,
  details         json,
  constraint audit_pkey PRIMARY KEY (id)
);

create table pawl.event (
  run_id          uuid not null,
  at              timestamp with time zone not null,
  began_at        timestamp with time zone,
  due_at          timestamp with time zone,
  worker_id       uuid,
  seq             pawl.ordinal not null,
  attempt         integer,
  epoch           integer,
  shard           smallint not null,
  format          smallint,
  kind            pawl.event_kind not null,
  name            text,
  data            json,
  notes           json,
  constraint event_pkey PRIMARY KEY (run_id, seq, shard)
);

create table pawl.inbox (
  run_id          uuid not null,
  id              uuid not null,
  chain_id        uuid,
  sent_to         uuid,
  sent_at         timestamp with time zone not null,
  taken_seq       integer,
  answer_seq      integer,
  shard           smallint not null,
  topic           text collate "C" not null,
  name            text,
  idempotency_key text collate "C",
  data            json,
  notes           json,
  constraint inbox_pkey PRIMARY KEY (run_id, id, shard)
);

create table pawl.key (
  run_id          uuid not null,
  version         integer not null,
  shard           smallint not null,
  key             text collate "C" not null,
  workflow        text not null,
  input_hash      bytea,
  constraint key_pkey PRIMARY KEY (key, shard)
);

create table pawl.lease (
  run_id          uuid not null,
  worker_id       uuid not null,
  claimed_at      timestamp with time zone not null,
  began_at        timestamp with time zone,
  epoch           integer not null,
  last_seq        integer not null,
  attempt         integer not null,
  failures        smallint not null,
  crashes         smallint not null,
  suspicion       smallint not null,
  crash_limit     smallint not null,
  shard           smallint not null,
  told            boolean not null,
  looks           integer default 0 not null,
  constraint lease_pkey PRIMARY KEY (run_id, shard)
) with (fillfactor=80, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000);

create table pawl.migration (
  version         integer not null,
  name            text not null,
  applied_at      timestamp with time zone default clock_timestamp() not null,
  is_breaking     boolean default false not null,
  constraint migration_pkey PRIMARY KEY (version)
);

create table pawl.pack (
  id              uuid not null,
  ready_at        timestamp with time zone not null,
  priority        integer not null,
  version         integer not null,
  shard           smallint not null,
  queue           text collate "C" not null,
  workflow        text collate "C" not null,
  run_ids         pawl.packed_runs not null,
  inputs          text,
  worker_id       uuid,
  claimed_at      timestamp with time zone,
  began_at        timestamp with time zone,
  crash_limit     smallint,
  constraint pack_pkey PRIMARY KEY (id, shard),
  constraint pack_held CHECK ((((worker_id IS NULL) = (claimed_at IS NULL)) AND ((worker_id IS NULL) = (crash_limit IS NULL))))
) with (fillfactor=60, toast_tuple_target=8160, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

create table pawl.parked (
  run_id          uuid not null,
  parked_at       timestamp with time zone not null,
  due_at          timestamp with time zone,
  epoch           integer not null,
  last_seq        integer not null,
  attempt         integer not null,
  failures        smallint not null,
  crashes         smallint not null,
  suspicion       smallint not null,
  shard           smallint not null,
  reason          pawl.park_reason not null,
  wants           text[] not null,
  fires           text,
  constraint parked_pkey PRIMARY KEY (run_id, shard)
) with (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000);

create table pawl.queue (
  name            text collate "C" not null,
  paused_at       timestamp with time zone,
  concurrency     integer,
  rate            integer,
  rate_period_ms  integer,
  settings        json,
  constraint queue_pkey PRIMARY KEY (name)
);

create table pawl.ready (
  run_id          uuid not null,
  ready_at        timestamp with time zone not null,
  expires_at      timestamp with time zone,
  epoch           integer not null,
  last_seq        integer not null,
  attempt         integer not null,
  priority        integer not null,
  version         integer not null,
  failures        smallint not null,
  crashes         smallint not null,
  suspicion       smallint not null,
  shard           smallint not null,
  told            boolean not null,
  suspect         boolean generated always as ((suspicion >= 2)) stored not null,
  queue           text collate "C" not null,
  workflow        text collate "C" not null,
  fifo_key        text,
  batch_key       text,
  tenant          text,
  constraint ready_pkey PRIMARY KEY (run_id, shard)
) with (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=2000, autovacuum_analyze_scale_factor=0.2);

create table pawl.run (
  id              uuid not null,
  parent_id       uuid,
  root_id         uuid,
  forked_from     uuid,
  first_id        uuid,
  continued_as    uuid,
  pack_id         uuid,
  created_at      timestamp with time zone not null,
  start_at        timestamp with time zone,
  expires_at      timestamp with time zone,
  deadline_at     timestamp with time zone,
  version         integer not null,
  priority        integer not null,
  depth           integer not null,
  shard           smallint not null,
  detached        boolean,
  raw             boolean,
  workflow        text not null,
  queue           text not null,
  key             text,
  parent_request  text,
  fifo_key        text,
  batch_key       text,
  tenant          text,
  tags            text[],
  retry           json,
  input           json,
  input_notes     json,
  constraint run_pkey PRIMARY KEY (id, shard)
);

create table pawl.schedule (
  name            text collate "C" not null,
  workflow        text not null,
  version         integer not null,
  cron            text not null,
  time_zone       text not null,
  paused_at       timestamp with time zone,
  last_slot_at    timestamp with time zone,
  next_slot_at    timestamp with time zone,
  last_run_id     uuid,
  run_count       bigint not null,
  definition_hash text not null,
  input           json,
  input_notes     json,
  constraint schedule_pkey PRIMARY KEY (name)
);

create table pawl.stopped (
  run_id          uuid not null,
  ended_at        timestamp with time zone not null,
  shard           smallint not null,
  epoch           integer not null,
  attempt         integer not null,
  status          pawl.end_status not null,
  error_code      text collate "C",
  error           json,
  error_notes     json,
  constraint stopped_pkey PRIMARY KEY (run_id, shard)
);

create table pawl.stream (
  run_id          uuid not null,
  at              timestamp with time zone not null,
  position        integer not null,
  attempt         integer,
  shard           smallint not null,
  is_first        boolean not null,
  is_closing      boolean not null,
  name            text collate "C" not null,
  step            text,
  data            json,
  notes           json,
  constraint stream_pkey PRIMARY KEY (run_id, name, "position", shard)
);

create table pawl.tag (
  run_id          uuid not null,
  shard           smallint not null,
  tag             text collate "C" not null,
  constraint tag_pkey PRIMARY KEY (tag, run_id, shard)
);

create table pawl.worker (
  id              uuid not null,
  started_at      timestamp with time zone not null,
  heard_at        timestamp with time zone not null,
  ended_at        timestamp with time zone,
  swept_at        timestamp with time zone,
  lease_ms        integer not null,
  pid             integer not null,
  concurrency     integer not null,
  held_at_end     integer,
  host            text not null,
  queues          text[] not null,
  workflows       text[] default '{}'::text[] not null,
  settings        json,
  long_steps      json,
  constraint worker_pkey PRIMARY KEY (id)
) with (fillfactor=70);

create table pawl.worker_sample (
  worker_id       uuid not null,
  at              timestamp with time zone not null,
  held            integer not null,
  memory_bytes    bigint,
  cpu_ratio       real,
  lag_ms          real,
  constraint worker_sample_pkey PRIMARY KEY (worker_id, at)
);

create function pawl.event_text_v1(p_kind text, p_name text, p_due_at timestamp with time zone, p_data json)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
AS $function$
declare
  v_why text := case when p_kind in ('step_failed', 'step_retried', 'undo_retried', 'undo_failed', 'blocked', 'attempt_failed',
                                     'failed')
                     then coalesce(': ' || (p_data ->> 'message'), '') end;
begin
  return case p_kind
    when 'step_intended' then 'step ' || p_name || ' is about to run'
    when 'step_completed' then 'step ' || p_name || ' completed'
    when 'step_failed' then 'step ' || p_name || ' failed' || v_why
    when 'step_retried' then 'step ' || p_name || ' is tried again at ' || "pawl".instant_text_v1(p_due_at) || v_why
    when 'step_progressed' then 'step ' || p_name || ' said how far it has come'
    when 'commit_lost' then 'transaction ' || p_name || ' did not commit, and is tried again'
    when 'timer_set' then case when "pawl".is_timeout_v1(p_name) then p_name || ' is waited for until '
                               else p_name || ' until ' end || "pawl".instant_text_v1(p_due_at)
    when 'timer_fired' then case when "pawl".is_timeout_v1(p_name) then p_name || ' did not come in time'
                                 else p_name || ' is over' end
    when 'signal_received' then case when p_name is not null then p_name || ' was received'
                                     else 'a signal was dropped' || coalesce(': ' || (p_data ->> 'dropped'), '') end
    when 'child_started' then 'child ' || p_name || ' started'
    when 'child_ended' then 'child ' || p_name || ' ' || coalesce(p_data ->> 'status', 'ended')
                            || coalesce(': ' || (p_data -> 'error' ->> 'message'), '')
    when 'published' then "pawl".published_key_v1(p_name) || ' was published'
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
    when 'undo_retried' then 'the undo of step ' || p_name || ' is tried again at ' || "pawl".instant_text_v1(p_due_at) || v_why
    when 'undo_completed' then 'step ' || p_name || ' was undone'
    when 'undo_failed' then 'step ' || p_name || ' could not be undone' || v_why
    when 'forked' then 'forked from run ' || (p_data ->> 'from')
    when 'redriven' then case when p_data ->> 'from' = 'start' then 'redriven from the start' else 'redriven' end
    when 'failed' then 'failed' || v_why
    when 'timed_out' then 'timed out'
    else p_kind end;
end
$function$;

create function pawl.is_timeout_v1(p_name text)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog'
AS $function$
begin
  return regexp_replace(p_name, '^(?:(?:\\.|[^\\/])*/)*', '') like 'signal:%';
end
$function$;

create function pawl.published_key_v1(p_name text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog'
AS $function$
begin
  return regexp_replace(
    regexp_replace(substr(regexp_replace(p_name, '^(?:(?:\\.|[^\\/])*/)*', ''), 9), '^((?:\\.|[^\\#])*)#[0-9]+$', '\1'),
    '\\(.)', '\1', 'g');
end
$function$;

create function pawl.read_nodes_v1(p_shard smallint, p_run uuid, p_ended boolean)
 RETURNS TABLE(place integer, name text, state text, reason text, workflow text, version integer, needs text[], at_least integer, is_each boolean, is_optional boolean, child_id uuid, runs integer, began_at timestamp with time zone, ended_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_since timestamptz := (
    select p.at from "pawl".read_published_v1(p_shard, p_run, 'graph') p where p.data ->> 'format' = 'pawl.dag/1');
begin
  if v_since is null then
    return;
  end if;
  return query
  with shown as materialized (
    select p.key, p.data, p.at from "pawl".read_published_v1(p_shard, p_run, null) p
  ), drawn as materialized (
    select (row_number() over (order by coalesce(substr(s.key, 7)::integer, 1), n.place) - 1)::integer as place,
           n.node ->> 'name' as name, n.node ->> 'workflow' as workflow, (n.node ->> 'version')::integer as version,
           n.node -> 'needs' as needs, (n.node ->> 'least')::integer as at_least,
           coalesce((n.node ->> 'each')::boolean, false) as is_each,
           coalesce((n.node ->> 'optional')::boolean, false) as is_optional
      from (select nullif(s.key, 'graph') as key, s.data
              from shown s
             where s.key ~ '^graph(:[0-9]+)?$' and s.data ->> 'format' = 'pawl.dag/1') s
     cross join lateral json_array_elements(s.data -> 'nodes') with ordinality n (node, place)
  ), names as materialized (
    select array_agg(d.name order by d.place) as names from drawn d
  ), child as materialized (
    select k.id, k.status, k.epoch, k.created_at, k.ended_at, k.error ->> 'message' as message,
           "pawl".outermost_scope_v1(k.request) as node,
           -- Without the scope of its node, which has another number when the node is begun anew.
           regexp_replace(k.request, '^(?:\\.|[^\\/])*/', '') as item
      from "pawl".read_children_v1(p_shard, p_run, null, null) k
     where k.created_at >= v_since
  ), own as materialized (
    select k.node, count(*)::integer as runs, min(k.created_at) as began_at, max(k.created_at) as started_at,
           bool_or(k.epoch > 0) as has_begun, (array_agg(k.id order by k.id desc))[1] as id,
           (array_agg(k.status order by k.id desc))[1] as status, (array_agg(k.epoch order by k.id desc))[1] as epoch,
           (array_agg(k.ended_at order by k.id desc))[1] as ended_at,
           (array_agg(k.message order by k.id desc))[1] as message
      from child k
     group by k.node
  ), items as materialized (
    select k.node, bool_or(k.ended_at is null) as is_any_open,
           (array_agg(k.status order by k.id desc) filter (where k.status <> 'completed'))[1] as status,
           (array_agg(k.message order by k.id desc) filter (where k.status <> 'completed'))[1] as message
      from (select distinct on (k.node, k.item) k.node, k.id, k.status, k.ended_at, k.message
              from child k
             where k.node in (select d.name from drawn d where d.is_each)
             order by k.node, k.item, k.id desc) k
     group by k.node
  ), told as (
    select d.place, s.data ->> 'state' as state, s.data ->> 'reason' as reason,
           s.at >= coalesce(c.started_at, s.at) and not (p_ended and s.data ->> 'state' = 'ready') as is_valid,
           -- It ended before, and its children were started since.
           s.at is not null and (p_ended or s.data ->> 'state' <> 'ready') as was_over,
           -- Of a node for each item, how the newest child ended that has not completed; null: all have.
           case when d.is_each then i.status else c.status end as status,
           case when d.is_each then i.message else c.message end as message,
           coalesce(i.is_any_open, false) as is_any_open
      from drawn d
      left join shown s on s.key = 'node:' || d.name
      left join own c on c.node = d.name
      left join items i on i.node = d.name
  )
  select d.place, d.name,
         case when t.is_valid then t.state
              when c.id is null then case when p_ended then 'skipped' else 'pending' end
              when t.is_any_open then case when c.has_begun then 'running' else 'ready' end
              when t.status is null then
                case when t.was_over then 'completed' when p_ended then 'failed' else 'running' end
              when t.status = 'completed' then 'completed'
              when t.status in ('failed', 'cancelled', 'timed_out', 'expired') then 'failed'
              when t.status = 'pending' and c.epoch = 0 then 'ready'
              else 'running' end,
         case when t.is_valid then t.reason
              when c.id is null then case when p_ended then 'the run has ended' end
              when t.is_any_open then null
              when t.status is null then case when p_ended and not t.was_over then 'the run has ended' end
              when t.status = 'failed' then t.message
              when t.status in ('cancelled', 'timed_out', 'expired') then t.status || coalesce(': ' || t.message, '')
              when t.status in ('paused', 'blocked') then 'its run is ' || t.status end,
         d.workflow, d.version,
         array(select a.names[i.node::integer + 1] from names a, json_array_elements_text(d.needs) i (node)), d.at_least,
         d.is_each, d.is_optional, c.id, coalesce(c.runs, 0), c.began_at, c.ended_at
    from drawn d
    join told t on t.place = d.place
    left join own c on c.node = d.name
   order by d.place;
end
$function$;

create function pawl.read_published_v1(p_shard smallint, p_run uuid, p_key text)
 RETURNS TABLE(key text, name text, data json, notes json, at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_key text := p_key;
  v_start integer := (
    select e.seq from "pawl".event e
     where e.run_id = p_run and e.kind = 'redriven' and "pawl".published_key_v1(e.name) collate "C" is null
       and e.data is not null and (e.shard = p_shard) is true
     order by "pawl".published_key_v1(e.name) collate "C" desc, e.seq desc
     limit 1);
begin
  if p_key is null then
    v_key := (select "pawl".published_key_v1(e.name) from "pawl".event e
               where e.run_id = p_run and e.kind = 'published' and (e.shard = p_shard) is true
               order by "pawl".published_key_v1(e.name) collate "C" limit 1);
  end if;
  while v_key is not null loop
    return query
    select v_key, e.name, e.data, e.notes, e.at
      from "pawl".event e
     where e.run_id = p_run and e.kind = 'published' and "pawl".published_key_v1(e.name) collate "C" = v_key
       and e.seq > coalesce(v_start, 0) and (e.shard = p_shard) is true
     order by "pawl".published_key_v1(e.name) collate "C" desc, e.seq desc
     limit 1;
    exit when p_key is not null;
    v_key := (select "pawl".published_key_v1(e.name) from "pawl".event e
               where e.run_id = p_run and e.kind = 'published' and "pawl".published_key_v1(e.name) collate "C" > v_key
                 and (e.shard = p_shard) is true
               order by "pawl".published_key_v1(e.name) collate "C" limit 1);
  end loop;
end
$function$;

CREATE INDEX event_at ON pawl.event USING brin (at);

CREATE INDEX event_patched ON pawl.event USING btree (name, run_id) WHERE ((kind)::text = 'patched'::text);

CREATE INDEX event_published ON pawl.event USING btree (run_id, pawl.published_key_v1(name) COLLATE "C", seq) WHERE ((kind)::text = ANY (ARRAY['published'::text, 'redriven'::text]));

CREATE UNIQUE INDEX inbox_idempotency ON pawl.inbox USING btree (COALESCE(chain_id, run_id), idempotency_key, shard) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX inbox_unread ON pawl.inbox USING btree (run_id, topic) WHERE (taken_seq IS NULL);

CREATE INDEX lease_worker ON pawl.lease USING btree (worker_id, claimed_at);

CREATE INDEX pack_claim ON pawl.pack USING btree (queue, workflow, version, priority, ready_at, uuid_send(id)) WHERE (worker_id IS NULL);

CREATE INDEX pack_worker ON pawl.pack USING btree (worker_id, claimed_at) WHERE (worker_id IS NOT NULL);

CREATE INDEX parked_due ON pawl.parked USING btree (shard, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX parked_reason ON pawl.parked USING btree (reason, run_id) WHERE ((reason)::text <> 'waiting'::text);

CREATE INDEX ready_claim ON pawl.ready USING btree (queue, workflow, version, suspect, priority, ready_at, uuid_send(run_id));

CREATE INDEX ready_expiry ON pawl.ready USING btree (shard, expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX ready_suspect ON pawl.ready USING btree (queue, workflow, version, priority) WHERE suspect;

CREATE UNIQUE INDEX run_chain ON pawl.run USING btree (first_id, shard) WHERE ((first_id IS NOT NULL) AND (continued_as IS NULL));

CREATE INDEX run_parent ON pawl.run USING btree (parent_id) WHERE (parent_id IS NOT NULL);

CREATE INDEX stopped_error ON pawl.stopped USING btree (error_code, run_id) WHERE (error_code IS NOT NULL);

CREATE INDEX stopped_status ON pawl.stopped USING btree (status, run_id);

CREATE INDEX worker_ended ON pawl.worker USING btree (ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX worker_unswept ON pawl.worker USING btree (id) WHERE (swept_at IS NULL);

create view pawl.activity_log as
 SELECT e.run_id,
    (e.seq)::integer AS seq,
        CASE e.kind
            WHEN 'child_ended'::text THEN 'child'::text
            WHEN 'signal_received'::text THEN 'signal'::text
            ELSE 'step'::text
        END AS kind,
    e.name,
    e.attempt,
    COALESCE(e.began_at, c.created_at, e.at) AS began_at,
    e.at AS ended_at,
        CASE
            WHEN ((e.kind)::text <> 'signal_received'::text) THEN (e.at - COALESCE(e.began_at, c.created_at))
            ELSE NULL::interval
        END AS duration,
    c.id AS child_id,
    c.input,
    c.input_notes,
        CASE e.kind
            WHEN 'child_ended'::text THEN (e.data -> 'output'::text)
            WHEN 'step_failed'::text THEN NULL::json
            ELSE e.data
        END AS result,
        CASE e.kind
            WHEN 'child_ended'::text THEN
            CASE
                WHEN ((e.data ->> 'error'::text) IS NOT NULL) THEN (e.data -> 'error'::text)
                ELSE NULL::json
            END
            WHEN 'step_failed'::text THEN e.data
            ELSE NULL::json
        END AS error,
    e.notes,
    e.shard
   FROM (pawl.event e
     LEFT JOIN LATERAL ( SELECT c_1.id,
            c_1.created_at,
            c_1.input,
            c_1.input_notes
           FROM pawl.run c_1
          WHERE ((c_1.shard = e.shard) AND (c_1.id =
                CASE
                    WHEN ((e.kind)::text = 'child_ended'::text) THEN ((e.data ->> 'id'::text))::uuid
                    ELSE NULL::uuid
                END))
         OFFSET 0) c ON (true))
  WHERE (((e.kind)::text = ANY (ARRAY['step_completed'::text, 'step_failed'::text, 'child_ended'::text, 'signal_received'::text])) AND (e.name IS NOT NULL));

create view pawl.attempts as
 SELECT e.run_id,
    (e.seq)::integer AS seq,
    e.attempt,
        CASE e.kind
            WHEN 'attempt_failed'::text THEN 'failed'::text
            WHEN 'attempt_crashed'::text THEN 'crashed'::text
            ELSE (e.kind)::text
        END AS outcome,
    (((e.kind)::text = 'attempt_failed'::text) OR (((e.kind)::text = 'attempt_crashed'::text) AND (NOT (EXISTS ( SELECT 1
           FROM pawl.event f
          WHERE ((f.shard = e.shard) AND (f.run_id = e.run_id) AND ((f.seq)::integer = ((e.seq)::integer + 1)) AND ((f.kind)::text = 'failed'::text))
         OFFSET 0))))) AS will_retry,
    e.began_at,
    e.at AS ended_at,
        CASE
            WHEN ((e.kind)::text = 'attempt_crashed'::text) THEN 'WORKER_CRASHED'::text
            WHEN ((e.kind)::text = ANY (ARRAY['attempt_failed'::text, 'failed'::text])) THEN (e.data ->> 'code'::text)
            ELSE NULL::text
        END AS error_code,
        CASE
            WHEN ((e.kind)::text = ANY (ARRAY['attempt_failed'::text, 'failed'::text])) THEN (e.data ->> 'message'::text)
            ELSE NULL::text
        END AS error_message,
    e.worker_id,
    w.host,
    w.pid,
    e.data,
    e.notes,
    e.shard
   FROM (pawl.event e
     LEFT JOIN LATERAL ( SELECT w_1.host,
            w_1.pid
           FROM pawl.worker w_1
          WHERE (w_1.id = e.worker_id)
         OFFSET 0) w ON (true))
  WHERE (((e.kind)::text = ANY (ARRAY['attempt_failed'::text, 'attempt_crashed'::text, 'completed'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text])) AND (e.attempt IS NOT NULL));

create view pawl.dead_letters as
 SELECT s.run_id,
    r.workflow,
    r.version,
    r.queue,
    r.key,
    r.tags,
    s.error_code,
    (s.error ->> 'message'::text) AS error_message,
    s.attempt AS attempts,
    r.created_at,
    s.ended_at AS failed_at,
    e.worker_id,
    w.host,
    w.pid,
    r.input,
    r.input_notes,
    s.error,
    s.error_notes,
    s.shard
   FROM (((pawl.stopped s
     CROSS JOIN LATERAL ( SELECT r_1.workflow,
            r_1.version,
            r_1.queue,
            r_1.key,
            r_1.tags,
            r_1.created_at,
            r_1.input,
            r_1.input_notes
           FROM pawl.run r_1
          WHERE ((r_1.shard = s.shard) AND (r_1.id = s.run_id))
         OFFSET 0) r)
     LEFT JOIN LATERAL ( SELECT e_1.worker_id
           FROM ( SELECT e_2.worker_id,
                    e_2.seq
                   FROM pawl.event e_2
                  WHERE ((e_2.shard = s.shard) AND (e_2.run_id = s.run_id))
                  ORDER BY e_2.seq DESC
                 LIMIT 2) e_1
          WHERE (e_1.worker_id IS NOT NULL)
          ORDER BY e_1.seq DESC
         LIMIT 1) e ON (true))
     LEFT JOIN LATERAL ( SELECT w_1.host,
            w_1.pid
           FROM pawl.worker w_1
          WHERE (w_1.id = e.worker_id)
         OFFSET 0) w ON (true))
  WHERE ((s.status)::text = 'failed'::text);

create view pawl.endings as
 SELECT r.id AS run_id,
    (e.kind)::text AS status,
    e.at AS ended_at,
    COALESCE(s.epoch, e.epoch, 1) AS epoch,
    COALESCE(s.attempt, e.attempt) AS attempt,
        CASE
            WHEN ((e.kind)::text = 'completed'::text) THEN e.data
            ELSE NULL::json
        END AS output,
        CASE
            WHEN ((e.kind)::text = 'completed'::text) THEN e.notes
            ELSE NULL::json
        END AS output_notes,
    s.error,
    s.error_notes,
    r.shard
   FROM ((pawl.run r
     CROSS JOIN LATERAL ( SELECT e_1.kind,
            e_1.at,
            e_1.epoch,
            e_1.attempt,
            e_1.data,
            e_1.notes
           FROM pawl.event e_1
          WHERE ((e_1.shard = r.shard) AND (e_1.run_id = r.id))
          ORDER BY e_1.seq DESC
         LIMIT 1) e)
     LEFT JOIN LATERAL ( SELECT s_1.epoch,
            s_1.attempt,
            s_1.error,
            s_1.error_notes
           FROM pawl.stopped s_1
          WHERE (((e.kind)::text <> 'completed'::text) AND (s_1.shard = r.shard) AND (s_1.run_id = r.id))
         OFFSET 0) s ON (true))
  WHERE ((e.kind)::text = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text, 'expired'::text]));

create view pawl.events as
 SELECT run_id,
    (seq)::integer AS seq,
    at,
    pawl.event_text_v1((kind)::text, name, due_at, data) AS what,
    (kind)::text AS kind,
    name,
    attempt,
    began_at,
    due_at,
    worker_id,
    data,
    notes,
    shard
   FROM pawl.event e;

create view pawl.live_runs as
 SELECT y.run_id,
    y.workflow,
    y.version,
    y.queue,
    'pending'::text AS status,
    NULL::text AS park_reason,
    y.ready_at AS moved_at,
    NULL::timestamp with time zone AS due_at,
    NULL::uuid AS worker_id,
    y.shard
   FROM pawl.ready y
UNION ALL
 SELECT u.run_id,
    k.workflow,
    k.version,
    k.queue,
        CASE
            WHEN (k.worker_id IS NULL) THEN 'pending'::text
            ELSE 'running'::text
        END AS status,
    NULL::text AS park_reason,
    COALESCE(k.claimed_at, k.ready_at) AS moved_at,
    NULL::timestamp with time zone AS due_at,
    k.worker_id,
    k.shard
   FROM (pawl.pack k
     CROSS JOIN LATERAL unnest((k.run_ids)::uuid[]) u(run_id))
UNION ALL
 SELECT l.run_id,
    r.workflow,
    r.version,
    r.queue,
    'running'::text AS status,
    NULL::text AS park_reason,
    l.claimed_at AS moved_at,
    NULL::timestamp with time zone AS due_at,
    l.worker_id,
    l.shard
   FROM (pawl.lease l
     CROSS JOIN LATERAL ( SELECT r_1.workflow,
            r_1.version,
            r_1.queue
           FROM pawl.run r_1
          WHERE ((r_1.shard = l.shard) AND (r_1.id = l.run_id))
         OFFSET 0) r)
UNION ALL
 SELECT p.run_id,
    r.workflow,
    r.version,
    r.queue,
        CASE p.reason
            WHEN 'delayed'::text THEN 'pending'::text
            WHEN 'retry'::text THEN 'waiting'::text
            ELSE (p.reason)::text
        END AS status,
    (p.reason)::text AS park_reason,
    p.parked_at AS moved_at,
    p.due_at,
    NULL::uuid AS worker_id,
    p.shard
   FROM (pawl.parked p
     CROSS JOIN LATERAL ( SELECT r_1.workflow,
            r_1.version,
            r_1.queue
           FROM pawl.run r_1
          WHERE ((r_1.shard = p.shard) AND (r_1.id = p.run_id))
         OFFSET 0) r);

create view pawl.nodes as
 SELECT r.id AS run_id,
    n.place,
    n.name,
    n.state,
    n.reason,
    n.workflow,
    n.version,
    n.needs,
    n.at_least,
    n.is_each,
    n.is_optional,
    n.child_id,
    n.runs,
    n.began_at,
    n.ended_at,
    r.shard
   FROM (pawl.run r
     CROSS JOIN LATERAL pawl.read_nodes_v1(r.shard, r.id, (EXISTS ( SELECT 1
           FROM pawl.endings d
          WHERE ((d.shard = r.shard) AND (d.run_id = r.id))
         OFFSET 0))) n(place, name, state, reason, workflow, version, needs, at_least, is_each, is_optional, child_id, runs, began_at, ended_at));

create view pawl.patches as
 WITH used AS MATERIALIZED (
         SELECT e.name AS patch,
            r.workflow,
            r.version,
            e.shard,
            min(e.at) AS since,
            count(*) FILTER (WHERE (d.status IS NULL)) AS runs
           FROM ((pawl.event e
             CROSS JOIN LATERAL ( SELECT r_1.workflow,
                    r_1.version
                   FROM pawl.run r_1
                  WHERE ((r_1.shard = e.shard) AND (r_1.id = e.run_id))
                 OFFSET 0) r)
             LEFT JOIN LATERAL ( SELECT d_1.status
                   FROM pawl.endings d_1
                  WHERE ((d_1.shard = e.shard) AND (d_1.run_id = e.run_id))
                 OFFSET 0) d ON (true))
          WHERE ((e.kind)::text = 'patched'::text)
          GROUP BY e.name, r.workflow, r.version, e.shard
        ), live AS MATERIALIZED (
         SELECT v.run_id AS live_id,
            v.workflow AS live_workflow,
            v.version AS live_version,
            v.shard AS live_shard,
            r.created_at
           FROM (( SELECT v_1.run_id,
                    v_1.workflow,
                    v_1.version,
                    v_1.shard
                   FROM pawl.live_runs v_1
                  WHERE ((v_1.workflow, v_1.version) IN ( SELECT u_1.workflow,
                            u_1.version
                           FROM used u_1))) v
             CROSS JOIN LATERAL ( SELECT r_1.created_at
                   FROM pawl.run r_1
                  WHERE ((r_1.shard = v.shard) AND (r_1.id = v.run_id))
                 OFFSET 0) r)
        )
 SELECT u.workflow,
    u.version,
    u.patch,
    u.since,
    (u.runs)::integer AS runs,
    o.older_runs,
    o.newer_runs,
    u.shard
   FROM (used u
     CROSS JOIN LATERAL ( SELECT (count(*) FILTER (WHERE (l.created_at < u.since)))::integer AS older_runs,
            (count(*) FILTER (WHERE (l.created_at >= u.since)))::integer AS newer_runs
           FROM live l
          WHERE ((l.live_workflow = u.workflow) AND (l.live_version = u.version) AND (l.live_shard = u.shard) AND (NOT (EXISTS ( SELECT 1
                   FROM pawl.event h
                  WHERE (((h.kind)::text = 'patched'::text) AND (h.name = u.patch) AND (h.run_id = l.live_id) AND (h.shard = u.shard))
                 OFFSET 0))))) o);

create view pawl.published as
 SELECT r.id AS run_id,
    p.key,
    p.data AS value,
    p.notes,
    p.at,
    r.shard
   FROM (pawl.run r
     CROSS JOIN LATERAL pawl.read_published_v1(r.shard, r.id, NULL::text) p(key, name, data, notes, at));

create view pawl.running_steps as
 SELECT s."runId" AS run_id,
    s.step AS name,
    to_timestamp((s."beganAt" / (1000.0)::double precision)) AS began_at,
    w.id AS worker_id,
    w.host,
    w.pid,
    w.heard_at,
    s.progress,
    s."progressNotes" AS progress_notes
   FROM (pawl.worker w
     CROSS JOIN LATERAL json_to_recordset(w.long_steps) s("runId" uuid, step text, "beganAt" double precision, progress json, "progressNotes" json))
  WHERE ((w.ended_at IS NULL) AND (w.long_steps IS NOT NULL));

create view pawl.runs as
 SELECT r.id,
    r.workflow,
    r.version,
    r.queue,
    r.priority,
        CASE
            WHEN (e.status IS NOT NULL) THEN e.status
            WHEN ((l.run_id IS NOT NULL) OR (k.worker_id IS NOT NULL)) THEN 'running'::text
            WHEN ((y.run_id IS NOT NULL) OR (k.ready_at IS NOT NULL) OR ((p.reason)::text = 'delayed'::text)) THEN 'pending'::text
            WHEN ((p.reason)::text = ANY (ARRAY['waiting'::text, 'retry'::text])) THEN 'waiting'::text
            ELSE (p.reason)::text
        END AS status,
    r.key,
    r.tags,
    r.parent_id,
    COALESCE(r.root_id, r.id) AS root_id,
    r.depth,
    r.forked_from,
    COALESCE(r.first_id, r.id) AS first_id,
    r.continued_as,
    COALESCE(l.epoch, y.epoch, k.epoch, p.epoch, s.epoch, e.epoch, 1) AS epoch,
    COALESCE(l.last_seq, y.last_seq, k.zero, p.last_seq) AS last_seq,
    COALESCE(l.attempt, y.attempt, (k.zero + 1), p.attempt, s.attempt, e.attempt) AS attempt,
    (COALESCE((l.failures)::integer, (y.failures)::integer, k.zero, (p.failures)::integer))::smallint AS failures,
    (COALESCE((l.crashes)::integer, (y.crashes)::integer, k.zero, (p.crashes)::integer))::smallint AS crashes,
    COALESCE(l.worker_id, k.worker_id) AS worker_id,
    w.host,
    w.pid,
    COALESCE(l.claimed_at, k.claimed_at) AS claimed_at,
    COALESCE(l.began_at, k.began_at) AS began_at,
    (p.reason)::text AS park_reason,
    p.due_at,
    p.wants,
    r.created_at,
    r.start_at,
    r.expires_at,
    r.deadline_at,
    COALESCE(e.ended_at, l.claimed_at, y.ready_at, k.claimed_at, k.ready_at, p.parked_at) AS moved_at,
    e.ended_at,
    (e.ended_at - r.created_at) AS duration,
    (s.error ->> 'code'::text) AS error_code,
    (s.error ->> 'message'::text) AS error_message,
    r.input,
    r.input_notes,
        CASE
            WHEN (e.status = 'completed'::text) THEN e.data
            ELSE NULL::json
        END AS output,
        CASE
            WHEN (e.status = 'completed'::text) THEN e.notes
            ELSE NULL::json
        END AS output_notes,
    s.error,
    s.error_notes,
    r.retry,
    r.shard
   FROM (((((((pawl.run r
     LEFT JOIN LATERAL ( SELECT (e_1.kind)::text AS status,
            e_1.at AS ended_at,
            e_1.epoch,
            e_1.attempt,
            e_1.data,
            e_1.notes
           FROM ( SELECT e_2.kind,
                    e_2.at,
                    e_2.epoch,
                    e_2.attempt,
                    e_2.data,
                    e_2.notes
                   FROM pawl.event e_2
                  WHERE ((e_2.shard = r.shard) AND (e_2.run_id = r.id))
                  ORDER BY e_2.seq DESC
                 LIMIT 1) e_1
          WHERE ((e_1.kind)::text = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text, 'timed_out'::text, 'expired'::text]))) e ON (true))
     LEFT JOIN LATERAL ( SELECT s_1.epoch,
            s_1.attempt,
            s_1.error,
            s_1.error_notes
           FROM pawl.stopped s_1
          WHERE ((e.status <> 'completed'::text) AND (s_1.shard = r.shard) AND (s_1.run_id = r.id))
         OFFSET 0) s ON (true))
     LEFT JOIN LATERAL ( SELECT y_1.run_id,
            y_1.epoch,
            y_1.last_seq,
            y_1.attempt,
            y_1.failures,
            y_1.crashes,
            y_1.ready_at
           FROM pawl.ready y_1
          WHERE ((e.status IS NULL) AND (y_1.shard = r.shard) AND (y_1.run_id = r.id))
         OFFSET 0) y ON (true))
     LEFT JOIN LATERAL ( SELECT k_1.ready_at,
            k_1.worker_id,
            k_1.claimed_at,
            k_1.began_at,
            ((k_1.worker_id IS NOT NULL))::integer AS epoch,
            0 AS zero
           FROM ( SELECT k_2.ready_at,
                    k_2.run_ids,
                    k_2.worker_id,
                    k_2.claimed_at,
                    k_2.began_at
                   FROM pawl.pack k_2
                  WHERE ((e.status IS NULL) AND (k_2.shard = r.shard) AND (k_2.id = r.pack_id))
                 OFFSET 0) k_1
          WHERE (r.id = ANY ((k_1.run_ids)::uuid[]))) k ON (true))
     LEFT JOIN LATERAL ( SELECT l_1.run_id,
            l_1.epoch,
            l_1.last_seq,
            l_1.attempt,
            l_1.failures,
            l_1.crashes,
            l_1.worker_id,
            l_1.claimed_at,
            l_1.began_at
           FROM pawl.lease l_1
          WHERE ((e.status IS NULL) AND (l_1.shard = r.shard) AND (l_1.run_id = r.id))
         OFFSET 0) l ON (true))
     LEFT JOIN LATERAL ( SELECT p_1.run_id,
            p_1.epoch,
            p_1.last_seq,
            p_1.attempt,
            p_1.failures,
            p_1.crashes,
            p_1.reason,
            p_1.due_at,
            p_1.wants,
            p_1.parked_at
           FROM pawl.parked p_1
          WHERE ((e.status IS NULL) AND (p_1.shard = r.shard) AND (p_1.run_id = r.id))
         OFFSET 0) p ON (true))
     LEFT JOIN LATERAL ( SELECT w_1.host,
            w_1.pid
           FROM pawl.worker w_1
          WHERE (w_1.id = COALESCE(l.worker_id, k.worker_id))
         OFFSET 0) w ON (true));

create view pawl.steps as
 SELECT run_id,
    (seq)::integer AS seq,
    name,
    (kind)::text AS kind,
    attempt,
    began_at,
    at AS ended_at,
    (at - began_at) AS duration,
        CASE
            WHEN ((kind)::text = 'step_failed'::text) THEN (data ->> 'code'::text)
            ELSE NULL::text
        END AS error_code,
        CASE
            WHEN ((kind)::text = 'step_failed'::text) THEN (data ->> 'message'::text)
            ELSE NULL::text
        END AS error_message,
    data,
    notes,
    shard
   FROM pawl.event e
  WHERE ((kind)::text = ANY (ARRAY['step_completed'::text, 'step_failed'::text]));

create view pawl.streams as
 SELECT run_id,
    name,
    "position",
    data AS value,
    notes,
    step,
    attempt,
    is_first,
    is_closing,
    at,
    shard
   FROM pawl.stream s;

create view pawl.tagged_runs as
 SELECT t.tag,
    t.run_id,
    r.workflow,
    r.version,
    r.queue,
    r.status,
    r.key,
    r.created_at,
    r.ended_at,
    r.error_code,
    r.error_message,
    t.shard
   FROM (pawl.tag t
     CROSS JOIN LATERAL ( SELECT r_1.workflow,
            r_1.version,
            r_1.queue,
            r_1.status,
            r_1.key,
            r_1.created_at,
            r_1.ended_at,
            r_1.error_code,
            r_1.error_message
           FROM pawl.runs r_1
          WHERE ((r_1.shard = t.shard) AND (r_1.id = t.run_id))
         OFFSET 0) r);

create view pawl.timeline as
 SELECT r.id AS run_id,
    0 AS seq,
    r.created_at AS at,
    ('started on queue '::text || r.queue) AS what,
    'started'::text AS kind,
    NULL::text AS name,
    NULL::integer AS attempt,
    NULL::uuid AS worker_id,
    r.input AS data,
    r.input_notes AS notes,
    r.shard
   FROM pawl.run r
UNION ALL
 SELECT e.run_id,
    (e.seq)::integer AS seq,
    e.at,
    pawl.event_text_v1((e.kind)::text, e.name, e.due_at, e.data) AS what,
    (e.kind)::text AS kind,
    e.name,
    e.attempt,
    e.worker_id,
    e.data,
    e.notes,
    e.shard
   FROM pawl.event e
UNION ALL
 SELECT e.run_id,
    (e.seq)::integer AS seq,
    e.began_at AS at,
    (('step '::text || e.name) || ' began'::text) AS what,
    'step_began'::text AS kind,
    e.name,
    e.attempt,
    e.worker_id,
    NULL::json AS data,
    NULL::json AS notes,
    e.shard
   FROM pawl.event e
  WHERE (((e.kind)::text = ANY (ARRAY['step_completed'::text, 'step_failed'::text, 'step_retried'::text])) AND (e.began_at IS NOT NULL))
UNION ALL
 SELECT e.run_id,
    (e.seq)::integer AS seq,
    e.began_at AS at,
    'a worker began to execute it'::text AS what,
    'execution_began'::text AS kind,
    NULL::text AS name,
    e.attempt,
    e.worker_id,
    NULL::json AS data,
    NULL::json AS notes,
    e.shard
   FROM pawl.event e
  WHERE (((e.kind)::text <> ALL (ARRAY['step_completed'::text, 'step_failed'::text, 'step_retried'::text])) AND (e.attempt IS NOT NULL) AND (e.began_at IS NOT NULL))
UNION ALL
 SELECT l.run_id,
    NULL::integer AS seq,
    l.began_at AS at,
    'a worker began to execute it'::text AS what,
    'execution_began'::text AS kind,
    NULL::text AS name,
    l.attempt,
    l.worker_id,
    NULL::json AS data,
    NULL::json AS notes,
    l.shard
   FROM pawl.lease l
  WHERE (l.began_at IS NOT NULL)
UNION ALL
 SELECT r.id AS run_id,
    NULL::integer AS seq,
    k.began_at AS at,
    'a worker began to execute it'::text AS what,
    'execution_began'::text AS kind,
    NULL::text AS name,
    1 AS attempt,
    k.worker_id,
    NULL::json AS data,
    NULL::json AS notes,
    r.shard
   FROM (pawl.run r
     CROSS JOIN LATERAL ( SELECT k_1.run_ids,
            k_1.worker_id,
            k_1.began_at
           FROM pawl.pack k_1
          WHERE ((k_1.shard = r.shard) AND (k_1.id = r.pack_id))
         OFFSET 0) k)
  WHERE ((r.id = ANY ((k.run_ids)::uuid[])) AND (k.began_at IS NOT NULL));

create view pawl.timers as
 SELECT e.run_id,
    (e.seq)::integer AS seq,
    e.name,
        CASE
            WHEN pawl.is_timeout_v1(e.name) THEN 'timeout'::text
            ELSE 'sleep'::text
        END AS kind,
    e.at AS set_at,
    e.due_at AS fire_at,
        CASE
            WHEN ((a.kind)::text = 'timer_fired'::text) THEN 'fired'::text
            WHEN ((a.kind IS NOT NULL) OR (d.status IS NOT NULL)) THEN 'void'::text
            ELSE 'set'::text
        END AS status,
        CASE
            WHEN ((a.kind)::text = 'timer_fired'::text) THEN a.at
            ELSE NULL::timestamp with time zone
        END AS fired_at,
    e.shard
   FROM ((pawl.event e
     LEFT JOIN LATERAL ( SELECT a_1.kind,
            a_1.at
           FROM pawl.event a_1
          WHERE ((a_1.shard = e.shard) AND (a_1.run_id = e.run_id) AND ((a_1.seq)::integer > (e.seq)::integer) AND (a_1.name = e.name) AND (((a_1.kind)::text = ANY (ARRAY['timer_fired'::text, 'signal_received'::text])) OR (((a_1.kind)::text = 'withdrawn'::text) AND ((a_1.data ->> 'family'::text) <> 'child'::text))))
          ORDER BY a_1.seq
         LIMIT 1) a ON (true))
     LEFT JOIN LATERAL ( SELECT d_1.status
           FROM pawl.endings d_1
          WHERE ((d_1.shard = e.shard) AND (d_1.run_id = e.run_id))
         OFFSET 0) d ON (true))
  WHERE ((e.kind)::text = 'timer_set'::text);

create view pawl.waits as
 SELECT p.run_id,
    r.workflow,
    r.version,
    r.queue,
    c.kind,
    c.name,
    c.child_id,
    p.parked_at AS since_at,
    p.due_at AS until_at,
    p.shard
   FROM ((pawl.parked p
     CROSS JOIN LATERAL ( SELECT r_1.workflow,
            r_1.version,
            r_1.queue,
            r_1.deadline_at
           FROM pawl.run r_1
          WHERE ((r_1.shard = p.shard) AND (r_1.id = p.run_id))
         OFFSET 0) r)
     CROSS JOIN LATERAL ( SELECT
                CASE p.reason
                    WHEN 'delayed'::text THEN 'start'::text
                    WHEN 'retry'::text THEN 'retry'::text
                    WHEN 'paused'::text THEN 'resume'::text
                    ELSE 'code'::text
                END AS kind,
            NULL::text AS name,
            NULL::uuid AS child_id
          WHERE ((p.reason)::text <> 'waiting'::text)
        UNION ALL
         SELECT
                CASE
                    WHEN (p.due_at = r.deadline_at) THEN 'deadline'::text
                    ELSE 'timer'::text
                END AS kind,
            NULL::text AS name,
            NULL::uuid AS child_id
          WHERE (((p.reason)::text = 'waiting'::text) AND (p.due_at IS NOT NULL))
        UNION ALL
         SELECT 'signal'::text AS kind,
            substr(t.topic, 8) AS name,
            NULL::uuid AS child_id
           FROM unnest(p.wants) t(topic)
          WHERE (((p.reason)::text = 'waiting'::text) AND (t.topic ~~ 'signal:%'::text))
        UNION ALL
         SELECT 'update'::text AS kind,
            substr(t.topic, 8) AS name,
            NULL::uuid AS child_id
           FROM unnest(p.wants) t(topic)
          WHERE (((p.reason)::text = 'waiting'::text) AND (t.topic ~~ 'update:%'::text))
        UNION ALL
         SELECT 'child'::text AS kind,
            k.workflow AS name,
            k.id AS child_id
           FROM ( SELECT k_1.id,
                    k_1.workflow
                   FROM pawl.run k_1
                  WHERE ((k_1.parent_id = p.run_id) AND (k_1.shard = p.shard) AND (NOT (EXISTS ( SELECT 1
                           FROM pawl.endings d
                          WHERE ((d.shard = k_1.shard) AND (d.run_id = k_1.id))
                         OFFSET 0))))
                 OFFSET 0) k
          WHERE (((p.reason)::text = 'waiting'::text) AND ('child'::text = ANY (p.wants)))) c);

create view pawl.workers as
 SELECT w.id,
    w.host,
    w.pid,
    w.queues,
    w.workflows,
    w.concurrency,
    w.started_at,
    w.heard_at,
    (w.heard_at + ((w.lease_ms)::double precision * '00:00:00.001'::interval)) AS expires_at,
    w.ended_at,
    ((w.ended_at IS NULL) AND (w.heard_at > (clock_timestamp() - ((w.lease_ms)::double precision * '00:00:00.001'::interval)))) AS is_alive,
    l.held,
    s.at AS sample_at,
    s.memory_bytes,
    s.cpu_ratio,
    s.lag_ms,
    w.long_steps,
    w.settings
   FROM ((pawl.worker w
     CROSS JOIN LATERAL ( SELECT (( SELECT count(*) AS count
                   FROM pawl.lease l_1
                  WHERE (l_1.worker_id = w.id)) + ( SELECT COALESCE(sum(cardinality((k.run_ids)::uuid[])), (0)::bigint) AS "coalesce"
                   FROM pawl.pack k
                  WHERE (k.worker_id = w.id))) AS held) l)
     LEFT JOIN LATERAL ( SELECT s_1.at,
            s_1.memory_bytes,
            s_1.cpu_ratio,
            s_1.lag_ms
           FROM pawl.worker_sample s_1
          WHERE (s_1.worker_id = w.id)
          ORDER BY s_1.at DESC
         LIMIT 1) s ON (true));

create function pawl.announce_ends_v1(p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
begin
  perform "pawl".hint_runs_v1('e', p_runs);
end
$function$;

create function pawl.answer_updates_v1(p_shard smallint, p_lost uuid[], e_runs uuid[], e_seqs integer[], e_kinds text[], e_takes uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_runs uuid[];
begin
  with answered as materialized (
    select i.place, e.run_id, coalesce(e.seq, e_seqs[1]) as seq
      from unnest(e_runs, e_seqs, e_kinds, e_takes) e (run_id, seq, kind, takes)
     cross join lateral (
       select i.ctid as place
         from "pawl".inbox i
        where i.shard = p_shard and i.run_id = e.run_id and i.id = e.takes and coalesce(i.answer_seq, -1) = -1
          for update) i
     where coalesce(e.kind, e_kinds[1]) = 'update_answered' and e.takes is not null and (p_lost is null or e.run_id <> all (p_lost))
  ), noted as (
    update "pawl".inbox i set answer_seq = a.seq from answered a where i.ctid = a.place returning a.run_id
  )
  select array_agg(distinct n.run_id) into v_runs from noted n;
  perform "pawl".hint_runs_v1('a', v_runs);
end
$function$;

create function pawl.append_events_v1(p_shard smallint, p_now timestamp with time zone, p_worker uuid, p_lost uuid[], e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms double precision[], e_delay_ms double precision[], e_due_ms double precision[], e_data text[], e_notes text[], e_takes uuid[], e_epochs integer[] DEFAULT NULL::integer[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_written integer;
begin
  if cardinality(e_runs) >= 16 then
    begin
      v_written := "pawl".insert_events_v1(p_shard, p_now, p_worker, p_lost, true, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                             e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_epochs);
    exception when unique_violation then
    end;
  end if;
  if v_written is null then
    v_written := "pawl".insert_events_v1(p_shard, p_now, p_worker, p_lost, false, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                           e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_epochs);
  end if;

  -- Asked as `is null`, the planner may look through all that is unread, for each message taken.
  if e_takes is not null then
    with taken as materialized (
      select i.place, e.seq
        from (select e.run_id, coalesce(e.seq, e_seqs[1]) as seq, e.takes
                from unnest(e_runs, e_seqs, e_takes) e (run_id, seq, takes)) e
       cross join lateral (
         select i.ctid as place
           from "pawl".inbox i
          where i.shard = p_shard and i.run_id = e.run_id and i.id = e.takes and coalesce(i.taken_seq, -1) = -1
            for update) i
       where e.takes is not null and (p_lost is null or e.run_id <> all (p_lost))
    )
    update "pawl".inbox i set taken_seq = t.seq from taken t where i.ctid = t.place;
    if 'update_answered' = any (e_kinds) then
      perform "pawl".answer_updates_v1(p_shard, p_lost, e_runs, e_seqs, e_kinds, e_takes);
    end if;
  end if;
  return v_written;
end
$function$;

create function pawl.backlog_v1(p_shard smallint, p_most integer)
 RETURNS TABLE(queue text, workflow text, version integer, n bigint, is_exact boolean, oldest_ms double precision)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  with recursive lane as (
    (select y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
       from "pawl".ready y
      order by y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
      limit 1)
    union all
    select n.queue, n.workflow, n.version, n.suspect, n.priority, n.ready_at
      from lane l
     cross join lateral (
       select y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
         from "pawl".ready y
        where (y.queue, y.workflow, y.version, y.suspect, y.priority) > (l.queue, l.workflow, l.version, l.suspect, l.priority)
        order by y.queue, y.workflow, y.version, y.suspect, y.priority, y.ready_at
        limit 1) n
  ), packed_lane as (
    (select k.queue, k.workflow, k.version, k.priority, k.ready_at
       from "pawl".pack k
      where k.worker_id is null
      order by k.queue, k.workflow, k.version, k.priority, k.ready_at
      limit 1)
    union all
    select n.queue, n.workflow, n.version, n.priority, n.ready_at
      from packed_lane l
     cross join lateral (
       select k.queue, k.workflow, k.version, k.priority, k.ready_at
         from "pawl".pack k
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
                          from (select s.run_ids from "pawl".pack s
                                 where s.shard = p_shard and s.queue = k.queue and s.workflow = k.workflow and s.version = k.version
                                   and s.worker_id is null
                                 limit p_most) s) as n
       from (select 1 from "pawl".ready y
              where y.shard = p_shard and y.queue = k.queue and y.workflow = k.workflow and y.version = k.version
              limit p_most) y) c
   order by k.queue, k.workflow, k.version;
end
$function$;

create function pawl.begin_runs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[])
 RETURNS TABLE(run_id uuid)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_held uuid[] := ("pawl".lock_leases_v1(p_shard, p_worker, p_runs, p_epochs)).runs;
begin
  update "pawl".lease l
     set began_at = clock_timestamp()
   where l.shard = p_shard and l.run_id = any (v_held) and l.began_at is null;

  return query select l from unnest("pawl".lost_runs_v1(p_runs, v_held)) l;
end
$function$;

create function pawl.cancel(run uuid, reason text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
declare
  v_data json := json_build_object('reason', cancel.reason);
begin
  perform "pawl".check_payload_v1('The reason', v_data);
  return "pawl".tell_in_transaction_v1("pawl".shard_of_v1(cancel.run), "pawl".new_id_v1("pawl".shard_of_v1(cancel.run)),
    cancel.run, 'cancel', v_data::text, null, null);
end
$function$;

create function pawl.cancel_children_v1(p_shard smallint, p_now timestamp with time zone, p_children uuid[], p_parents uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_told uuid[];
begin
  with told as (
    insert into "pawl".inbox (shard, run_id, id, sent_at, topic, data)
    select p_shard, c.id, "pawl".cancel_from_parent_v1(c.id, c.parent_id), p_now, 'cancel', '{"reason":"parent"}'::json
      from "pawl".run c
     where c.shard = p_shard and c.id = any (p_children) and (c.parent_id = any (p_parents)) is true
       and "pawl".end_status_v1(p_shard, c.id) is null
    on conflict (shard, run_id, id) do update set sent_at = excluded.sent_at, taken_seq = null
    returning run_id
  )
  select array_agg(t.run_id) into v_told from told t;
  return v_told;
end
$function$;

create function pawl.cancel_error_v1(p_data json)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if json_typeof(p_data -> 'reason') = 'string' then
    return json_build_object('name', 'PawlError', 'code', 'RUN_CANCELLED', 'message', p_data -> 'reason')::text;
  end if;
  return null;
end
$function$;

create function pawl.cancel_from_parent_v1(p_child uuid, p_parent uuid)
 RETURNS uuid
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return (left(p_child::text, 24) || right(p_parent::text, 12))::uuid;
end
$function$;

create function pawl.cancel_unbegun_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_ended uuid[];
  v_seqs integer[];
  v_attempts integer[];
  v_errors text[];
begin
  -- Two statements: a due timer may move a run from parked to ready in between.
  with gone as (
    delete from "pawl".parked p
     where p.shard = p_shard and p.run_id = any (p_runs) and p.epoch = 0
       and exists (select 1 from "pawl".inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null and i.topic = 'cancel' offset 0)
    returning p.run_id, p.last_seq, p.attempt
  )
  select array_agg(g.run_id), array_agg(g.last_seq), array_agg(g.attempt) into v_ended, v_seqs, v_attempts from gone g;
  with gone as (
    delete from "pawl".ready y
     where y.shard = p_shard and y.run_id = any (p_runs) and y.epoch = 0
       and exists (select 1 from "pawl".inbox i
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
         from "pawl".inbox i
        where i.shard = p_shard and i.run_id = g.run_id and i.taken_seq is null and i.topic = 'cancel'
        order by i.sent_at, i.id
        limit 1
          for update) m
  ), taken as (
    update "pawl".inbox i set taken_seq = f.last_seq + 1
      from first f
     where i.ctid = f.place
  ), written as (
    insert into "pawl".event (shard, run_id, seq, at, kind, data, notes)
    select p_shard, f.run_id, f.last_seq + 1, p_now, 'cancel_requested', f.data, f.notes from first f
     union all
    select p_shard, f.run_id, f.last_seq + 2, p_now, 'cancelled', null, null from first f
  )
  select array_agg("pawl".cancel_error_v1(f.data) order by array_position(v_ended, f.run_id)) into v_errors from first f;

  perform "pawl".wake_runs_v1(p_shard, p_now, "pawl".finish_runs_v1(p_shard, p_now, v_ended,
    "pawl".parents_of_v1(p_shard, v_ended), array_fill('cancelled'::text, array[cardinality(v_ended)]),
    array_fill(0, array[cardinality(v_ended)]), v_attempts, v_errors, null));
end
$function$;

create function pawl.chain_end_v1(p_shard smallint, p_first uuid)
 RETURNS uuid
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return (select r.id from "pawl".run r where r.shard = p_shard and r.first_id = p_first and r.continued_as is null);
end
$function$;

create function pawl.chain_ends_v1(p_shard smallint, p_runs uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
begin
  return array(
    select "pawl".chain_end_v1(p_shard, c.first_id)
      from (select coalesce(r.first_id, r.id) as first_id, r.continued_as
              from "pawl".run r
             where r.shard = p_shard and r.id = any (p_runs)
            offset 0) c
     where c.continued_as is not null);
end
$function$;

create function pawl.check_name_v1(p_what text, p_name text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if p_name is null or p_name = '' then
    raise exception 'A %''s name must not be empty.', p_what using errcode = 'PW003', detail = 'INVALID_NAME';
  end if;
  if octet_length(convert_to(p_name, 'UTF8')) > 255 then
    raise exception 'A %''s name must not be longer than 255 bytes.', p_what using errcode = 'PW003', detail = 'INVALID_NAME';
  end if;
end
$function$;

create function pawl.check_payload_v1(p_what text, p_value json)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_shape text;
begin
  if octet_length(p_value::text) > 1048576 then
    raise exception '%: the value is larger than 1048576 bytes: keep it elsewhere and store where.', p_what
      using errcode = 'PW004', detail = 'INVALID_PAYLOAD';
  end if;

  begin
    perform p_value::jsonb;
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    raise exception '%: the value cannot be read back as it is: %.', p_what, sqlerrm
      using errcode = 'PW004', detail = 'INVALID_PAYLOAD';
  end;

  -- Only its brackets: each turn takes away the innermost ones.
  v_shape := regexp_replace(regexp_replace(p_value::text, '"(?:[^"\\]|\\.)*"', '', 'g'), '[^][{}]+', '', 'g');
  if length(v_shape) > 200 then
    for v_level in 1 .. 100 loop
      v_shape := regexp_replace(v_shape, '\[\]|\{\}', '', 'g');
      exit when v_shape = '';
    end loop;
    if v_shape <> '' then
      raise exception '%: the value lies deeper than 100 levels.', p_what using errcode = 'PW004', detail = 'INVALID_PAYLOAD';
    end if;
  end if;
end
$function$;

create function pawl.check_start_v1(p_workflow text, p_input json, p_version integer, p_key text, p_queue text, p_tags text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  perform "pawl".check_name_v1('workflow', p_workflow);
  perform "pawl".check_name_v1('queue', coalesce(p_queue, 'default'));
  if p_key is not null then
    perform "pawl".check_name_v1('key', p_key);
  end if;
  perform "pawl".check_name_v1('tag', t.tag) from unnest(p_tags) t (tag);
  perform "pawl".check_payload_v1('The input of ' || p_workflow, p_input);
  if p_version < 1 then
    raise exception 'The option "version" of start must be from 1 to 2147483647.' using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;
end
$function$;

create function pawl.child_end_v1(p_id uuid, p_first uuid, p_status text, p_output json, p_error json)
 RETURNS json
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
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
$function$;

create function pawl.child_notes_v1(p_output_notes json, p_error_notes json)
 RETURNS json
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if p_output_notes is null and p_error_notes is null then
    return null;
  end if;
  return json_build_object('output', p_output_notes, 'error', p_error_notes);
end
$function$;

create function pawl.claim_runs_v1(p_shard smallint, p_worker uuid, p_limit integer, p_suspects boolean, p_begin boolean, p_queues text[], p_workflows text[], p_versions integer[], p_crash_limits smallint[], p_after_priorities integer[], p_after_ms double precision[], p_after_ids uuid[], p_lease_ms integer)
 RETURNS TABLE(run_id uuid, lane integer, ready_ms double precision, input text, notes text, epoch integer, last_seq integer, told boolean, created_ms double precision, more text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_left integer := p_limit;
  v_lanes integer[];
  v_priorities integer[];
  v_ready_ats timestamptz[];
  v_run_ids uuid[];
  v_quotas integer[];
  v_suspects_waiting boolean;
  v_is_alive boolean;
  v_pack_lanes integer[];
  v_packs "pawl".place[];
  -- Where in each lane to look from, for rows of ready and for packs: behind its mark, and behind what others have locked.
  v_from "pawl".place[];
  v_passed "pawl".place[];
  v_end "pawl".place := (2147483647, 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_before "pawl".place;
  v_ready "pawl".place;
  v_lane integer;
  v_began_at timestamptz;
  v_held uuid[];
  v_cut uuid[];
  v_read uuid[];
  v_count integer;
  v_missed boolean := false;
  v_has_left boolean := false;
  v_bytes bigint := 0;
begin
  v_from := array(
    select (m.priority, coalesce(to_timestamp(m.ready_ms / 1000.0), '-infinity'), m.run_id)::"pawl".place
      from unnest(p_after_priorities, p_after_ms, p_after_ids) with ordinality m (priority, ready_ms, run_id, lane)
     order by m.lane);
  if not p_suspects then
    v_passed := v_from;
  end if;
  loop
    v_pack_lanes := null;
    v_packs := null;
    if v_passed is not null then
      -- The first pack of each lane, in the order of claiming. Before ready is looked into: runs go from packs to ready.
      select array_agg(k.lane order by k.place), array_agg(k.place order by k.place)
        into v_pack_lanes, v_packs
        from (select l.lane, (k.priority, k.ready_at, k.id)::"pawl".place as place
                from unnest(p_queues, p_workflows, p_versions, v_passed)
                     with ordinality l (queue, workflow, version, priority, ready_at, run_id, lane)
               cross join lateral (
                 select k.priority, k.ready_at, k.id
                   from "pawl".pack k
                  where k.shard = p_shard and k.queue = l.queue and k.workflow = l.workflow and k.version = l.version
                    and k.worker_id is null
                    and (k.priority, k.ready_at, uuid_send(k.id)) > (l.priority, l.ready_at, uuid_send(l.run_id))
                  order by k.priority, k.ready_at, uuid_send(k.id)
                  limit 1) k
               where not exists (select 1 from "pawl".queue q where q.name = l.queue and q.paused_at is not null offset 0)) k;
    end if;

    -- The first claimable row of each lane, and whether suspects wait in it.
    select array_agg(l.lane) filter (where f.run_id is not null),
           array_agg(f.priority) filter (where f.run_id is not null),
           array_agg(f.ready_at) filter (where f.run_id is not null),
           array_agg(f.run_id) filter (where f.run_id is not null),
           coalesce(bool_or(s.waits), false)
      into v_lanes, v_priorities, v_ready_ats, v_run_ids, v_suspects_waiting
      from unnest(p_queues, p_workflows, p_versions, v_from)
           with ordinality l (queue, workflow, version, priority, ready_at, run_id, lane)
      left join lateral (
        select r.priority, r.ready_at, r.run_id
          from "pawl".ready r
         where r.shard = p_shard and r.suspect = p_suspects
           and r.queue = l.queue and r.workflow = l.workflow and r.version = l.version
           and (r.priority, r.ready_at, uuid_send(r.run_id)) > (l.priority, l.ready_at, uuid_send(l.run_id))
           and (r.expires_at <= v_now) is not true
         order by r.priority, r.ready_at, uuid_send(r.run_id)
         limit 1) f on true
      left join lateral (
        select true as waits
          from "pawl".ready r
         where r.shard = p_shard and r.suspect
           and r.queue = l.queue and r.workflow = l.workflow and r.version = l.version
         order by r.priority
         limit 1) s on true
     where not exists (select 1 from "pawl".queue q where q.name = l.queue and q.paused_at is not null offset 0);
    if v_is_alive is null then
      if v_lanes is null and v_packs is null then
        v_is_alive := exists (select 1 from "pawl".worker w where w.id = p_worker and w.ended_at is null);
      else
        v_is_alive := "pawl".keep_worker_v1(p_worker, v_now, p_lease_ms);
      end if;
      if not v_is_alive then
        raise exception 'worker % has expired', p_worker using errcode = 'PW001';
      end if;
    end if;
    exit when v_lanes is null and v_packs is null;

    v_ready := v_end;
    if v_packs is not null and v_lanes is not null then
      select l.priority, l.ready_at, l.run_id into v_ready
        from unnest(v_priorities, v_ready_ats, v_run_ids) l (priority, ready_at, run_id)
       order by l.priority, l.ready_at, l.run_id
       limit 1;
    end if;

    if v_packs[1] < v_ready then
      v_lane := v_pack_lanes[1];
      v_began_at := case when p_begin and p_crash_limits[v_lane] > 0 then v_now end;
      select t.packs, t.cut, t.taken, t.has_left into v_held, v_cut, v_count, v_has_left
        from "pawl".take_packed_v1(p_shard, p_queues[v_lane], p_workflows[v_lane], p_versions[v_lane], v_passed[v_lane],
                                     least(v_ready, v_packs[2]), v_left, p_worker, v_now, v_began_at, p_crash_limits[v_lane]) t;
      if v_count = 0 then
        v_passed[v_lane] := least(v_ready, v_packs[2]);
        v_missed := true;
        continue;
      end if;
      -- They are plain, and told in one row for all of a pack.
      return query
      select null::uuid, v_lane, floor(round(date_part('epoch', k.ready_at) * 1e6) / 1e3), null, null, null::integer, null::integer,
             null::boolean, null::float8,
             format('{"pack":"%s","priority":%s,"ids":["%s"],"inputs":%s}', k.id, k.priority, array_to_string(k.run_ids, '","'), k.inputs)
        from "pawl".pack k
       where k.shard = p_shard and k.id = any (v_held) and k.inputs is not null;
      v_read := v_cut || array(select u
                                 from (select k.run_ids from "pawl".pack k
                                        where k.shard = p_shard and k.id = any (v_held) and k.inputs is null) k
                                cross join unnest(k.run_ids) u);
      if v_read <> '{}' then
        return query
        with held as (
          insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                      crashes, suspicion, crash_limit, told)
          select p_shard, t, p_worker, v_now, v_began_at, 1, 0, 1, 0, 0, 0, p_crash_limits[v_lane], false
            from unnest(v_cut) t
        ), claimed as materialized (
          select r.id, r.input, r.input_notes, r.created_at, r.priority, case when r.id <> all (v_cut) then r.pack_id end as pack_id,
                 v_bytes + sum(coalesce(octet_length(r.input::text), 0) + coalesce(octet_length(r.input_notes::text), 0))
                             over (rows unbounded preceding) > 8000000 as left_out
            from "pawl".run r
           where r.shard = p_shard and r.id = any (v_read)
        )
        select null::uuid, v_lane, floor(round(date_part('epoch', r.created_at) * 1e6) / 1e3), null, null, null::integer, null::integer,
               null::boolean, null::float8,
               json_build_object('pack', r.pack_id, 'priority', r.priority, 'ids', json_agg(r.id),
                                 'inputs', json_agg(case when not r.left_out then r.input::text end),
                                 'notes', case when count(r.input_notes::text) > 0
                                               then json_agg(case when not r.left_out then r.input_notes::text end) end,
                                 'leftOut', json_agg(r.id) filter (where r.left_out))::text
          from claimed r
         group by r.pack_id, r.created_at, r.priority;
      end if;
    else
      v_before := coalesce(v_packs[1], v_end);
      if cardinality(v_lanes) = 1 then
        v_quotas := array[v_left];
      elsif cardinality(v_lanes) > 1 then
        select array_agg(coalesce(c.n, 0) order by l.place) into v_quotas
          from generate_subscripts(v_lanes, 1) l (place)
          left join (
            select c.place, count(*)::integer as n
              from (select l.place
                      from unnest(v_lanes, v_priorities, v_ready_ats, v_run_ids)
                           with ordinality l (lane, priority, ready_at, run_id, place)
                     cross join lateral (
                       select r.priority, r.ready_at, r.run_id
                         from "pawl".ready r
                        where r.shard = p_shard and r.suspect = p_suspects and r.queue = p_queues[l.lane]
                          and r.workflow = p_workflows[l.lane] and r.version = p_versions[l.lane]
                          and (r.priority, r.ready_at, uuid_send(r.run_id)) >= (l.priority, l.ready_at, uuid_send(l.run_id))
                          and (r.priority, r.ready_at, uuid_send(r.run_id)) < (v_before.priority, v_before.ready_at, uuid_send(v_before.run_id))
                          and (r.expires_at <= v_now) is not true
                        order by r.priority, r.ready_at, uuid_send(r.run_id)
                        limit v_left) r
                     order by r.priority, r.ready_at, r.run_id
                     limit v_left) c
             group by c.place) c on c.place = l.place;
      end if;

      -- Two lists of about a batch are joined by a hash, whatever the statistics: both count as ten rows or more.
      return query
      with picked as materialized (
        select r.place, l.lane, p_crash_limits[l.lane] as crash_limit
          from unnest(v_lanes, v_quotas, v_priorities, v_ready_ats, v_run_ids) l (lane, quota, priority, ready_at, run_id)
         cross join lateral (
           select r.ctid as place
             from "pawl".ready r
            where r.shard = p_shard and r.suspect = p_suspects and r.queue = p_queues[l.lane]
              and r.workflow = p_workflows[l.lane] and r.version = p_versions[l.lane]
              and (r.priority, r.ready_at, uuid_send(r.run_id)) >= (l.priority, l.ready_at, uuid_send(l.run_id))
              and (r.priority, r.ready_at, uuid_send(r.run_id)) < (v_before.priority, v_before.ready_at, uuid_send(v_before.run_id))
              and (r.expires_at <= v_now) is not true
            order by r.priority, r.ready_at, uuid_send(r.run_id)
            limit l.quota
              for update skip locked) r
      ), gone as (
        delete from "pawl".ready r
         using picked p
         where r.ctid = p.place
        returning r.run_id, r.epoch + 1 as epoch, r.last_seq, r.attempt, r.failures, r.crashes, r.suspicion, r.told,
                  r.priority, r.ready_at, p.lane, p.crash_limit
      ), held as (
        insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                    crashes, suspicion, crash_limit, told)
        select p_shard, g.run_id, p_worker, v_now, case when p_begin and g.crash_limit > 0 then v_now end, g.epoch, g.last_seq, g.attempt,
               g.failures, g.crashes, g.suspicion, g.crash_limit, g.told
          from gone g
      ), claimed as materialized (
        select r.id, r.key, r.parent_id, r.root_id, r.depth, r.input, r.input_notes,
               r.created_at, r.deadline_at, r.retry, r.raw, r.tags,
               v_bytes + sum(coalesce(octet_length(r.input::text), 0) + coalesce(octet_length(r.input_notes::text), 0))
                           over (rows unbounded preceding) > 8000000 as left_out
          from "pawl".run r
         where r.shard = p_shard and r.id = any (array(select g.run_id from gone g))
      )
      select g.run_id, g.lane, floor(round(date_part('epoch', g.ready_at) * 1e6) / 1e3),
             case when not r.left_out then r.input::text end, case when not r.left_out then r.input_notes::text end,
             nullif(g.epoch, 1), nullif(g.last_seq, 0), nullif(g.told, false),
             case when r.created_at <> g.ready_at then floor(round(date_part('epoch', r.created_at) * 1e6) / 1e3) end,
             case when g.attempt > 1 or g.failures > 0 or g.suspicion > 0 or g.priority <> 0 or r.key is not null
                    or r.parent_id is not null or r.root_id is not null or r.deadline_at is not null or r.retry is not null
                    or r.raw or r.tags is not null or r.left_out
                  then json_build_object(
                    'attempt', g.attempt, 'failures', g.failures, 'suspicion', g.suspicion, 'priority', g.priority, 'key', r.key,
                    'parentId', r.parent_id, 'rootId', r.root_id, 'depth', r.depth,
                    'deadlineAt', floor(round(date_part('epoch', r.deadline_at) * 1e6) / 1e3), 'retry', r.retry,
                    'isRaw', r.raw, 'tags', r.tags, 'isInputLeftOut', r.left_out)::text end
        from gone g
        join claimed r on r.id = g.run_id;
      get diagnostics v_count = row_count;
      -- Others are taking those that stand before the pack.
      if v_count = 0 and v_packs is not null then
        for i in 1 .. cardinality(v_from) loop
          v_from[i] := greatest(v_from[i], v_before);
        end loop;
        v_missed := true;
      end if;
    end if;
    v_left := v_left - v_count;
    exit when v_left = 0 or v_packs is null or v_has_left;
    v_bytes := (
      select coalesce(sum(coalesce(octet_length(r.input::text), 0) + coalesce(octet_length(r.input_notes::text), 0)), 0)
        from "pawl".run r
       where r.shard = p_shard
         and r.id = any (array((select l.run_id from "pawl".lease l
                                 where l.worker_id = p_worker and l.claimed_at = v_now and l.shard = p_shard)
                               union all
                                select u
                                  from (select k.run_ids from "pawl".pack k
                                         where k.worker_id = p_worker and k.claimed_at = v_now and k.shard = p_shard) k
                                 cross join unnest(k.run_ids) u)));
  end loop;

  -- A suspect just taken does not wait.
  if p_suspects and v_left < p_limit then
    v_suspects_waiting := exists (
      select 1
        from unnest(p_queues, p_workflows, p_versions) l (queue, workflow, version)
       cross join lateral (
         select 1
           from "pawl".ready r
          where r.shard = p_shard and r.suspect
            and r.queue = l.queue and r.workflow = l.workflow and r.version = l.version
          order by r.priority
          limit 1) r
       where not exists (select 1 from "pawl".queue q where q.name = l.queue and q.paused_at is not null offset 0));
  end if;

  run_id := null;
  told := v_suspects_waiting;
  epoch := case when v_has_left then 2 when v_missed and v_left > 0 then 1 end;
  created_ms := floor(extract(epoch from v_now) * 1000);
  ready_ms := "pawl".server_v1();
  return next;
end
$function$;

create function pawl.complete_run_v1(p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_server double precision, e_seq integer, e_attempt integer, e_epoch integer, e_began_ms double precision, e_data text, e_notes text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
begin
  if p_server <> "pawl".server_v1() then
    return false;
  end if;
  delete from "pawl".lease l
   where l.shard = p_shard and l.run_id = p_run and (l.worker_id = p_worker) is true and l.epoch = p_epoch;
  if not found then
    return false;
  end if;
  insert into "pawl".event (shard, run_id, seq, at, kind, attempt, epoch, began_at, data, notes, worker_id)
  values (p_shard, p_run, e_seq, clock_timestamp(), 'completed', e_attempt, e_epoch, to_timestamp(e_began_ms / 1000.0), e_data::json,
          e_notes::json, p_worker);
  return true;
end
$function$;

create function pawl.continue_runs_v1(p_shard smallint, p_now timestamp with time zone, p_next json, p_lost uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_old uuid[];
  v_new uuid[];
  v_told uuid[];
  v_rooms "pawl".room[];
begin
  -- One run is at the end of a chain: the old one makes way first.
  with target as materialized (
    select r.place, n.id
      from json_to_recordset(p_next) as n (id uuid, run_id uuid)
     cross join lateral (
       select r.ctid as place
         from "pawl".run r
        where r.shard = p_shard and r.id = n.run_id
       offset 0) r
     where p_lost is null or n.run_id <> all (p_lost)
  ), made_way as (
    update "pawl".run r
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
    insert into "pawl".run (shard, id, workflow, version, queue, priority, input, input_notes, key, created_at,
                              deadline_at, parent_id, parent_request, root_id, depth, tags, retry, raw, first_id,
                              detached, fifo_key, batch_key, tenant)
    select p_shard, n.id, r.workflow, n.version, r.queue, r.priority, n.input::json, n.notes::json, r.key, p_now,
           r.deadline_at, r.parent_id, r.parent_request, coalesce(r.root_id, r.id), r.depth, r.tags, r.retry, n.raw,
           coalesce(r.first_id, r.id), r.detached, r.fifo_key, r.batch_key, r.tenant
      from json_to_recordset(p_next) as n (id uuid, run_id uuid, version integer, input text, notes text, raw boolean)
     cross join lateral (
       select r.id, r.first_id, r.root_id, r.parent_id, r.deadline_at, r.priority, r.depth, r.detached, r.workflow, r.queue,
              r.key, r.parent_request, r.fifo_key, r.batch_key, r.tenant, r.tags, r.retry
         from "pawl".run r
        where r.shard = p_shard and r.id = n.run_id
       offset 0) r
     where n.id = any (v_new)
    returning id, tags
  )
  insert into "pawl".tag (shard, run_id, tag)
  select p_shard, b.id, t
    from born b
   cross join unnest(b.tags) t
  on conflict do nothing;

  -- What the key was given for stays: a repeated start is known by the first input.
  with mine as materialized (
    select k.place, n.new_id
      from unnest(v_old, v_new) n (old_id, new_id)
     cross join lateral (
       select r.key from "pawl".run r where r.shard = p_shard and r.id = n.old_id offset 0) r
     cross join lateral (
       select k.ctid as place
         from "pawl".key k
        where k.shard = p_shard and k.key = r.key and (k.run_id = n.old_id) is true
          for update) k
  )
  update "pawl".key k set run_id = m.new_id from mine m where k.ctid = m.place;

  v_told := "pawl".move_messages_v1(p_shard, v_old, v_new);
  select array_agg((n.id, 0, 0, 1, 0, 0, 0, v_told is not null and n.id = any (v_told))::"pawl".room)
    into v_rooms from unnest(v_new) n (id);
  perform "pawl".put_ready_v1(p_shard, p_now, v_rooms);
  return v_told;
end
$function$;

create function pawl.count_runs_v1(p_shard smallint, p_most integer)
 RETURNS TABLE(status text, n bigint, is_exact boolean)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_ready bigint := (select count(*) from (select 1 from "pawl".ready y where y.shard = p_shard limit p_most) y);
  v_packs bigint := (select count(*) from (select 1 from "pawl".pack k where k.shard = p_shard limit p_most) k);
  v_packed bigint := (select coalesce(sum(cardinality(k.run_ids)), 0)
                        from (select k.run_ids, k.worker_id from "pawl".pack k where k.shard = p_shard limit p_most) k
                       where k.worker_id is null);
  v_held_packed bigint := (select coalesce(sum(cardinality(k.run_ids)), 0)
                             from (select k.run_ids from "pawl".pack k
                                    where k.shard = p_shard and k.worker_id is not null
                                    order by k.worker_id, k.claimed_at limit p_most) k);
  v_held bigint := (select count(*) from (select 1 from "pawl".lease l where l.shard = p_shard limit p_most) l);
  v_parked bigint := (select count(*) from (select 1 from "pawl".parked p where p.shard = p_shard limit p_most) p);
  v_delayed bigint := (select count(*) from (select 1 from "pawl".parked p
                                              where p.shard = p_shard and p.reason = 'delayed' limit p_most) p);
  v_paused bigint := (select count(*) from (select 1 from "pawl".parked p
                                             where p.shard = p_shard and p.reason = 'paused' limit p_most) p);
  v_blocked bigint := (select count(*) from (select 1 from "pawl".parked p
                                              where p.shard = p_shard and p.reason = 'blocked' limit p_most) p);
  v_stopped bigint := (select count(*) from (select 1 from "pawl".stopped s where s.shard = p_shard limit p_most) s);
  v_all bigint := (select count(*) from (select 1 from "pawl".run r where r.shard = p_shard limit p_most) r);
  v_exact boolean := v_all < p_most;
begin
  if not v_exact then
    v_ready := "pawl".estimate_rows_v1('"pawl".ready', v_ready, p_most);
    v_packed := "pawl".estimate_rows_v1('"pawl".pack', v_packs, p_most) * v_packed / greatest(v_packs, 1);
    v_held := "pawl".estimate_rows_v1('"pawl".lease', v_held, p_most);
    v_parked := "pawl".estimate_rows_v1('"pawl".parked', v_parked, p_most);
    v_stopped := "pawl".estimate_rows_v1('"pawl".stopped', v_stopped, p_most);
    v_all := "pawl".estimate_rows_v1('"pawl".run', v_all, p_most);
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
       from (select 1 from "pawl".stopped s where s.shard = p_shard and s.status = k.status limit p_most) s) s;
end
$function$;

create function pawl.create_held_run_v1(p_shard smallint, p_holder uuid, p_crash_limit smallint, p_lease_ms integer, n_id uuid, n_workflow text, n_version integer, n_queue text, n_priority integer, n_input text, n_notes text)
 RETURNS TABLE(held_ms double precision, server double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_now timestamptz;
begin
  if exists (select 1 from "pawl".queue q where q.name = n_queue and q.paused_at is not null)
     or not "pawl".keep_worker_v1(p_holder, clock_timestamp(), p_lease_ms) then
    return;
  end if;
  v_now := clock_timestamp();
  insert into "pawl".run (shard, id, workflow, version, queue, priority, input, input_notes, created_at, depth)
  values (p_shard, n_id, n_workflow, n_version, n_queue, n_priority, n_input::json, n_notes::json, v_now, 0);
  insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                              crashes, suspicion, crash_limit, told)
  values (p_shard, n_id, p_holder, v_now, v_now, 1, 0, 1, 0, 0, 0, p_crash_limit, false);
  held_ms := floor(extract(epoch from v_now) * 1000);
  server := "pawl".server_v1();
  return next;
end
$function$;

create function pawl.create_in_transaction_v1(p_shard smallint, p_runs json)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  return (select coalesce(json_agg(json_build_object('run_id', c.run_id, 'outcome', c.outcome, 'owner_id', c.owner_id)), '[]')
            from "pawl".start_runs_v1(p_shard, p_runs, true, json_array_length(p_runs) > 1, null, null) c);
end
$function$;

create function pawl.create_runs_v1(p_shard smallint, p_runs json, p_keyed boolean, p_whole boolean, p_holder uuid, p_crash_limit smallint, p_lease_ms integer, n_ids uuid[], n_workflows text[], n_versions integer[], n_queues text[], n_priorities integer[], n_inputs text[], n_notes text[], p_packed boolean)
 RETURNS TABLE(run_id uuid, outcome text, owner_id uuid, held_ms double precision, told boolean, server double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_holder uuid := p_holder;
  v_paused text[];
  v_held uuid[];
  v_now timestamptz;
begin
  if p_holder is not null then
    v_paused := array(select q.name from "pawl".queue q where q.paused_at is not null order by q.name offset 0);
    if v_paused <> '{}'
       and v_paused @> coalesce(n_queues, array(select n.queue from json_to_recordset(p_runs) as n (queue text))) then
      v_holder := null;
    elsif not "pawl".keep_worker_v1(p_holder, clock_timestamp(), p_lease_ms) then
      v_holder := null;
    end if;
  end if;
  v_now := clock_timestamp();

  if p_runs is null then
    v_held := "pawl".put_plain_runs_v1(p_shard, v_now, n_ids, n_workflows, n_versions, n_queues, n_priorities, n_inputs, n_notes,
                                         p_packed, v_holder, p_crash_limit, v_paused);
  elsif p_keyed then
    return query
    select s.run_id, s.outcome, s.owner_id, null::float8, null::boolean, null::float8
      from "pawl".start_runs_v1(p_shard, p_runs, p_keyed, p_whole, v_holder, p_crash_limit) s;
  else
    v_held := "pawl".put_runs_v1(p_shard, v_now, p_runs, null, v_holder, p_crash_limit);
  end if;

  if cardinality(v_held) = coalesce(cardinality(n_ids), json_array_length(p_runs)) then
    held_ms := floor(extract(epoch from v_now) * 1000);
    told := false;
    server := "pawl".server_v1();
    return next;
  -- An earlier try, whose answer was lost, may have been the one that counted. What p_holder has claimed since is no start's:
  -- its claim answers for that.
  elsif p_holder is not null then
    n_ids := coalesce(n_ids, array(select n.id from json_to_recordset(p_runs) as n (id uuid)));
    return query
    select l.run_id, 'created', l.run_id, floor(extract(epoch from l.claimed_at) * 1000)::float8, l.told,
           "pawl".server_v1()
      from "pawl".lease l
     where l.shard = p_shard and l.run_id = any (n_ids)
       and (l.worker_id = p_holder) is true and l.epoch = 1 and l.last_seq = 0
       and l.claimed_at = (select r.created_at from "pawl".run r where r.shard = p_shard and r.id = l.run_id);
  end if;
end
$function$;

create function pawl.end_runs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers double precision[], p_packs uuid[], p_firsts integer[], p_lasts integer[], p_statuses text[], p_errors text[], p_error_notes text[], p_children json, p_written json, p_next json, p_parents uuid[], e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms double precision[], e_delay_ms double precision[], e_due_ms double precision[], e_data text[], e_notes text[], e_takes uuid[], e_epochs integer[])
 RETURNS TABLE(run_id uuid)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_children uuid[];
  v_locked uuid[];
  v_taken uuid[];
  v_gone uuid[];
  v_attempts integer[];
  v_lost uuid[];
  v_wake uuid[];
  v_next uuid[];
  v_now timestamptz;
begin
  e_runs := coalesce(e_runs, case when e_seqs is not null then p_runs end);
  if p_statuses is not null or p_parents is not null or p_next is not null then
    v_children := "pawl".stopped_children_v1(p_shard, p_runs, p_statuses);
    v_locked := p_runs || p_parents || v_children;
    perform 1 from (select 1 from "pawl".run r
                     where r.shard = p_shard and r.id = any (v_locked)
                     order by r.id for no key update) r;
  end if;
  if p_packs is not null then
    v_taken := "pawl".take_packs_v1(p_shard, p_worker, p_runs, p_epochs, p_servers, p_packs, p_firsts, p_lasts);
  end if;
  if cardinality(v_locked) > cardinality(p_runs) then
    perform 1 from (select 1 from "pawl".lease l
                     where l.shard = p_shard and l.run_id = any (v_locked)
                     order by l.run_id for update) l;
  end if;
  select t.runs, t.attempts into v_gone, v_attempts
    from "pawl".take_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers, v_taken) t;
  v_lost := "pawl".lost_runs_v1(p_runs, v_gone);
  v_now := clock_timestamp();
  -- An earlier write of this holder, its answer lost, may have added children while we waited for the lease.
  if v_children is not null
     and exists (select c from unnest("pawl".stopped_children_v1(p_shard, p_runs, p_statuses)) c
                 except select c from unnest(v_children) c) then
    raise exception 'children were added meanwhile' using errcode = 'serialization_failure';
  end if;

  -- The fact that says how a run ended is its last, also where an earlier write of its holder has the number which that was given.
  if "pawl".append_events_v1(p_shard, v_now, p_worker, v_lost, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                               e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_takes, e_epochs) < cardinality(e_runs) then
    insert into "pawl".event (shard, run_id, seq, at, kind, attempt, epoch, began_at, data, notes, worker_id)
    select p_shard, e.run_id, "pawl".newest_seq_v1(p_shard, e.run_id) + 1, v_now, e.kind, e.attempt, e.epoch,
           to_timestamp(e.began_ms / 1000.0), e.data::json, e.notes::json, case when e.kind <> 'expired' then p_worker end
      from (select e.run_id, coalesce(e.kind, e_kinds[1]) as kind, e.epoch, e.began_ms, e.data, e.notes,
                   case when cardinality(e_attempts) = 1 then e_attempts[1] else e.attempt end as attempt
              from unnest(e_runs, e_kinds, e_attempts, e_epochs, e_began_ms, e_data, e_notes)
                   e (run_id, kind, attempt, epoch, began_ms, data, notes)) e
     where e.kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired') and e.run_id = any (v_gone)
       and "pawl".end_status_v1(p_shard, e.run_id) is null;
  end if;
  if p_children is not null then
    perform "pawl".put_children_v1(p_shard, v_now, p_children, v_lost);
    v_children := "pawl".stopped_children_v1(p_shard, p_runs, p_statuses);
  end if;
  if p_written is not null then
    perform "pawl".write_streams_v1(p_shard, v_now, p_written, v_lost);
  end if;
  if p_next is not null then
    v_next := "pawl".continue_runs_v1(p_shard, v_now, p_next, v_lost);
  end if;

  -- Most often all are ended, and were found in the order in which they are named.
  if p_statuses is null or v_gone = p_runs then
    v_wake := "pawl".finish_runs_v1(p_shard, v_now, v_gone, p_parents, p_statuses, p_epochs, v_attempts, p_errors, p_error_notes);
  else
    v_wake := (
      select "pawl".finish_runs_v1(p_shard, v_now, array_agg(i.id), p_parents, array_agg(i.status), array_agg(i.epoch),
                                     array_agg(v_attempts[array_position(v_gone, i.id)]), array_agg(i.error),
                                     array_agg(i.error_notes))
        from unnest(p_runs, p_epochs, p_statuses, p_errors, p_error_notes) i (id, epoch, status, error, error_notes)
       where i.id = any (v_gone)
      having count(*) > 0);
  end if;

  if v_children is not null then
    v_wake := v_wake || "pawl".cancel_children_v1(p_shard, v_now, v_children, v_gone);
  end if;
  if v_wake is not null or v_next is not null then
    perform "pawl".wake_runs_v1(p_shard, v_now, v_wake || v_next);
  end if;

  if v_lost is not null then
    foreach run_id in array v_lost loop
      return next;
    end loop;
  end if;
end
$function$;

create function pawl.end_status_v1(p_shard smallint, p_run uuid)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  v_kind text := (select e.kind from "pawl".event e where e.shard = p_shard and e.run_id = p_run order by e.seq desc limit 1);
begin
  return case when v_kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired') then v_kind end;
end
$function$;

create function pawl.estimate_rows_v1(p_table regclass, p_counted bigint, p_most integer)
 RETURNS bigint
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  if p_counted < p_most then
    return p_counted;
  end if;
  return greatest(p_most, (select greatest(s.n_live_tup, c.reltuples::bigint)
                             from pg_catalog.pg_class c
                             left join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
                            where c.oid = p_table));
end
$function$;

create function pawl.expire_runs_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_expired uuid[];
  v_epochs integer[];
  v_attempts integer[];
  v_statuses text[];
begin
  with late as materialized (
    select y.ctid as place
      from "pawl".ready y
     where y.shard = p_shard and y.run_id = any (p_runs) and (y.expires_at <= p_now) is true
     order by y.run_id
       for update skip locked
  ), gone as (
    delete from "pawl".ready y using late
     where y.ctid = late.place
    returning y.run_id, y.last_seq, y.epoch, y.attempt, y.expires_at
  ), ended as materialized (
    select g.run_id, g.last_seq, g.epoch, g.attempt,
           case when g.expires_at = r.expires_at then 'expired' else 'timed_out' end as status
      from gone g
     cross join lateral (
       select r.expires_at from "pawl".run r where r.shard = p_shard and r.id = g.run_id offset 0) r
  ), fact as (
    insert into "pawl".event (shard, run_id, seq, at, kind)
    select p_shard, e.run_id, e.last_seq + 1, p_now, e.status from ended e
  )
  select array_agg(e.run_id), array_agg(e.epoch), array_agg(e.attempt), array_agg(e.status)
    into v_expired, v_epochs, v_attempts, v_statuses from ended e;
  if v_expired is not null then
    perform "pawl".wake_runs_v1(p_shard, p_now, "pawl".finish_runs_v1(p_shard, p_now, v_expired,
      "pawl".parents_of_v1(p_shard, v_expired), v_statuses, v_epochs, v_attempts, null, null));
  end if;
  return coalesce(cardinality(v_expired), 0);
end
$function$;

create function pawl.find_key_v1(p_shard smallint, p_key text)
 RETURNS uuid
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  return (select k.run_id from "pawl".key k where k.shard = p_shard and k.key = p_key);
end
$function$;

create function pawl.find_or_start_v1(p_shard smallint, p_run json, p_bound_to uuid)
 RETURNS TABLE(outcome text, owner_id uuid)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  v_id uuid := p_run ->> 'id';
  v_owner uuid;
  v_workflow text;
begin
  if coalesce(p_bound_to, v_id) = v_id then
    insert into "pawl".key (shard, key, run_id, workflow, version, input_hash)
    values (p_shard, p_run ->> 'key', v_id, p_run ->> 'workflow', (p_run ->> 'version')::integer,
            "pawl".input_hash_v1(p_run ->> 'input', p_run ->> 'notes'))
    on conflict (shard, key) do nothing;
  end if;
  select k.run_id, k.workflow into v_owner, v_workflow
    from "pawl".key k where k.shard = p_shard and k.key = p_run ->> 'key';
  if v_workflow <> p_run ->> 'workflow' then
    return query select 'conflict', v_owner;
  elsif p_bound_to <> coalesce(v_owner, v_id) then
    return query select 'elsewhere', coalesce(v_owner, v_id);
  elsif v_owner = v_id then
    perform "pawl".put_runs_v1(p_shard, clock_timestamp(), json_build_array(p_run), null, null, null);
    return query select 'created', v_id;
  else
    return query select 'found', v_owner;
  end if;
end
$function$;

create function pawl.find_written_v1(p_shard smallint, p_runs uuid[], p_names text[], p_after integer[])
 RETURNS TABLE(has_news boolean)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  return query
  select not exists (select 1 from "pawl".run r
                      where r.shard = p_shard and r.id = q.run_id and "pawl".end_status_v1(p_shard, r.id) is null
                     offset 0)
         or exists (select 1 from "pawl".stream s
                     where s.shard = p_shard and s.run_id = q.run_id and s.name = q.name and s.position = q.after + 1
                    offset 0)
    from unnest(p_runs, p_names, p_after) with ordinality q (run_id, name, after, place)
   order by q.place;
end
$function$;

create function pawl.finish_runs_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[], p_parents uuid[], p_statuses text[], p_epochs integer[], p_attempts integer[], p_errors text[], p_error_notes text[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
begin
  if p_statuses is not null then
    insert into "pawl".stopped (shard, run_id, ended_at, epoch, attempt, status, error_code, error, error_notes)
    select p_shard, i.id, p_now, i.epoch, i.attempt, i.status, left(i.error::json ->> 'code', 255), i.error::json,
           i.error_notes::json
      from unnest(p_runs, p_statuses, p_epochs, p_attempts, p_errors, p_error_notes)
           i (id, status, epoch, attempt, error, error_notes)
     where i.status <> 'completed';
  end if;
  perform "pawl".hint_runs_v1('e', p_runs);
  if p_parents is null then
    return null;
  end if;
  return "pawl".tell_parents_v1(p_shard, p_now, p_runs);
end
$function$;

create function pawl.forget_children_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into "pawl".inbox (shard, run_id, id, sent_at, taken_seq, topic, name)
  select p_shard, c.parent_id, c.id, p_now, 0, 'child', c.parent_request
    from unnest(p_runs) p (id)
   cross join lateral (
     select c.parent_id, c.id, c.parent_request
       from "pawl".run c
      where c.shard = p_shard and c.parent_id = p.id
     offset 0) c
  on conflict (shard, run_id, id) do update set taken_seq = 0 where inbox.taken_seq is null;
end
$function$;

create function pawl.fork_run_v1(p_shard smallint, p_run json, p_events json)
 RETURNS TABLE(outcome text, owner_id uuid)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_id uuid := p_run ->> 'id';
  v_now timestamptz := clock_timestamp();
  v_outcome text := 'created';
  v_owner uuid := v_id;
begin
  select coalesce(s.outcome, v_outcome), coalesce(s.owner_id, v_owner) into v_outcome, v_owner
    from (select 1) one
    left join "pawl".start_runs_v1(p_shard, json_build_array(p_run), p_run ->> 'key' is not null, false, null, null) s on true;
  -- A statement of its own: it sees what an earlier try committed while this one waited for it.
  if v_outcome = 'created'
     and not exists (select 1 from "pawl".event e where e.shard = p_shard and e.run_id = v_id and e.seq = 1) then
    insert into "pawl".event (shard, run_id, seq, at, kind, name, attempt, began_at, due_at, data, notes)
    select p_shard, v_id, e.seq, coalesce(to_timestamp(e.at_ms / 1000.0), v_now), e.kind, e.name, e.attempt,
           to_timestamp(e.began_ms / 1000.0), to_timestamp(e.due_ms / 1000.0), e.data::json, e.notes::json
      from json_to_recordset(p_events) as e (seq integer, at_ms float8, kind text, name text, attempt integer,
             began_ms float8, due_ms float8, data text, notes text);
    update "pawl".ready y set last_seq = json_array_length(p_events) where y.shard = p_shard and y.run_id = v_id;
  end if;
  return query select v_outcome, v_owner;
end
$function$;

create function pawl.forward_messages_v1(p_shard smallint, p_runs uuid[], p_locked uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_from uuid[];
  v_to uuid[];
begin
  select array_agg(f.id), array_agg(f.chain_end) into v_from, v_to
    from (select c.id, "pawl".chain_end_v1(p_shard, c.first_id) as chain_end
            from (select r.id, coalesce(r.first_id, r.id) as first_id, r.continued_as
                    from "pawl".run r
                   where r.shard = p_shard and r.id = any (p_runs)
                  offset 0) c
           where c.continued_as is not null
          offset 0) f
   where f.chain_end = any (p_locked) and "pawl".end_status_v1(p_shard, f.chain_end) is null;
  if v_from is null then
    return null;
  end if;
  return "pawl".move_messages_v1(p_shard, v_from, v_to);
end
$function$;

create function pawl.hear_children_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into "pawl".inbox (shard, run_id, id, sent_at, topic, name, data, notes)
  select p_shard, c.parent_id, c.id, p_now, 'child', c.parent_request,
         "pawl".child_end_v1(c.id, c.first_id, coalesce(e.status, 'cancelled'), e.output, e.error),
         "pawl".child_notes_v1(e.output_notes, e.error_notes)
    from unnest(p_runs) p (id)
   cross join lateral (
     select c.parent_id, c.id, c.first_id, c.parent_request
       from "pawl".run c
      where c.shard = p_shard and c.parent_id = p.id and c.continued_as is null
     offset 0) c
    left join lateral (
      select e.status, e.output, e.output_notes, e.error, e.error_notes
        from "pawl".endings e
       where e.shard = p_shard and e.run_id = c.id and c.id <> all (p_runs)
      offset 0) e on true
   where e.status is not null or "pawl".is_stopping_v1(p_shard, c.id, c.parent_id)
  on conflict (shard, run_id, id) do update
     set sent_at = excluded.sent_at, data = excluded.data, notes = excluded.notes
   where inbox.taken_seq is null;

  with unread as materialized (
    select i.place, i.run_id, i.id, i.name, i.data, i.notes,
           case when c.status is null and "pawl".is_stopping_v1(p_shard, i.id, i.run_id) then 'cancelled' else c.status end as status
      from unnest(p_runs) p (id)
     cross join lateral (
       select i.ctid as place, i.run_id, i.id, i.name, i.data, i.notes
         from "pawl".inbox i
        where i.shard = p_shard and i.run_id = p.id and i.taken_seq is null and i.topic = 'child'
          for update) i
     cross join lateral (
       select case when c.id <> all (p_runs) then "pawl".end_status_v1(p_shard, c.id) end as status
         from "pawl".run c
        where c.shard = p_shard and c.id = i.id
       offset 0) c
  ), failed as materialized (
    select u.place, u.run_id, u.name, u.data, u.notes, "pawl".newest_seq_v1(p_shard, u.run_id)
             + (row_number() over (partition by u.run_id order by u.id))::integer as seq
      from unread u
     where u.status <> 'completed'
  ), taken as (
    update "pawl".inbox i set taken_seq = f.seq from failed f where i.ctid = f.place
  ), void as (
    delete from "pawl".inbox i using unread u where i.ctid = u.place and u.status is null
  )
  insert into "pawl".event (shard, run_id, seq, at, kind, name, data, notes)
  select p_shard, f.run_id, f.seq, p_now, 'child_ended', f.name, f.data, f.notes from failed f;
end
$function$;

create function pawl.heartbeat_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_claims_known_to_ms double precision, p_long_steps json, p_sample json, p_lease_ms integer)
 RETURNS TABLE(run_id uuid, news text, now_ms double precision, lease_ms double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '1s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off'
AS $function$
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
  select w.lease_ms into v_lease_ms from "pawl".worker w where w.id = p_worker;
  v_may_rest := p_lease_ms > v_lease_ms;
  if v_may_rest then
    select w.lease_ms into v_lease_ms from "pawl".worker w where w.id = p_worker for update;
  else
    select w.lease_ms into v_lease_ms from "pawl".worker w where w.id = p_worker for no key update;
  end if;
  v_now := clock_timestamp();
  if p_lease_ms <= v_lease_ms
     or v_may_rest
        and not exists (select 1 from "pawl".lease l
                         where l.shard = p_shard and l.worker_id = p_worker order by l.claimed_at offset 0)
        and not exists (select 1 from "pawl".pack k
                         where k.shard = p_shard and k.worker_id = p_worker order by k.claimed_at offset 0) then
    v_lease_ms := p_lease_ms;
  end if;
  update "pawl".worker w
     set heard_at = v_now, long_steps = p_long_steps, lease_ms = v_lease_ms
   where w.id = p_worker and w.ended_at is null
     and w.heard_at > v_now - w.lease_ms * interval '1 millisecond';
  if not found then
    return query select null::uuid, 'expired'::text, floor(extract(epoch from v_now) * 1000)::float8, v_lease_ms::float8;
    return;
  end if;

  if p_sample is not null then
    begin
      insert into "pawl".worker_sample (worker_id, at, held, memory_bytes, cpu_ratio, lag_ms)
      select p_worker, v_now, s.held, s.memory_bytes, s.cpu_ratio, s.lag_ms
        from json_to_record(p_sample) as s (held integer, memory_bytes bigint, cpu_ratio real, lag_ms real)
      on conflict do nothing;
    exception when others then
      null;
    end;
  end if;

  -- Compared as sets: as a join it may cost the product of both. Packs with runs that it does not know get leases.
  v_packs := array(select k.id from "pawl".pack k
                    where k.shard = p_shard and k.worker_id = p_worker and k.claimed_at <= v_known_to
                    order by k.claimed_at);
  if v_packs <> '{}'
     and exists (select u
                   from (select k.run_ids from "pawl".pack k where k.shard = p_shard and k.id = any (v_packs)) k
                  cross join unnest(k.run_ids) u
                 except
                 select k.run_id from unnest(p_runs, p_epochs) k (run_id, epoch) where k.epoch = 1) then
    v_packs := array(select k.id from "pawl".pack k
                      where k.shard = p_shard and k.id = any (v_packs) and (k.worker_id = p_worker) is true
                      order by k.id
                        for update skip locked);
    perform "pawl".unpack_v1(p_shard, v_packs);
  end if;
  v_unknown := array(
    select u.run_id
      from ((select l.run_id, l.epoch
               from "pawl".lease l
              where l.shard = p_shard and l.worker_id = p_worker and l.claimed_at <= v_known_to
              order by l.claimed_at)
            except
            select k.run_id, k.epoch from unnest(p_runs, p_epochs) k (run_id, epoch)) u);
  if v_unknown <> '{}' then
    v_unknown := array(
      select l.run_id
        from "pawl".lease l
       where l.shard = p_shard and l.run_id = any (v_unknown)
         and (l.worker_id = p_worker) is true and l.claimed_at <= v_known_to
       order by l.run_id
         for update skip locked);
    perform "pawl".return_leases_v1(p_shard, v_now, v_unknown);
  end if;

  return query
  select u, 'returned'::text, null::float8, null::float8 from unnest(v_unknown) u;
  return query
  select k.run_id, case when l.run_id is null then 'lost' else 'told' end, null::float8, null::float8
    from unnest(p_runs, p_epochs) k (run_id, epoch)
    left join lateral (
      select l.run_id, l.told
        from "pawl".lease l
       where l.shard = p_shard and l.run_id = k.run_id and l.epoch = k.epoch and (l.worker_id = p_worker) is true
      offset 0) l on true
   where (l.run_id is null or l.told)
     and (k.epoch = 1 and k.run_id in (select u
                                         from (select k.run_ids from "pawl".pack k
                                                where k.shard = p_shard and k.worker_id = p_worker
                                                order by k.claimed_at
                                               offset 0) k
                                        cross join unnest(k.run_ids) u)) is not true;
  return query
  select null::uuid, 'alive'::text, floor(extract(epoch from v_now) * 1000)::float8, v_lease_ms::float8;
end
$function$;

create function pawl.hint_ready_v1(p_queues text[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  if p_queues is not null then
    perform pg_notify('pawl_9b12b8e4295d095ce55e5154', 'r' || q) from unnest(p_queues) q group by q;
  end if;
end
$function$;

create function pawl.hint_runs_v1(p_kind text, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  for v_first in 1 .. coalesce(cardinality(p_runs), 0) by 200 loop
    perform pg_notify('pawl_9b12b8e4295d095ce55e5154', p_kind || replace(array_to_string(p_runs[v_first : v_first + 199], ','), '-', ''));
  end loop;
end
$function$;

create function pawl.id_at(at timestamp with time zone)
 RETURNS uuid
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog'
AS $function$
begin
  -- Within 48 bits, also where it is infinite.
  return lpad(to_hex(floor(least(281474976710655, greatest(0, extract(epoch from at) * 1000)))::bigint), 12, '0')
    || '00000000000000000000';
end
$function$;

create function pawl.id_of(key text)
 RETURNS uuid
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  return (select k.run_id from "pawl".key k where k.key = id_of.key limit 1);
end
$function$;

create function pawl.input_hash_v1(p_input text, p_notes text)
 RETURNS bytea
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if p_notes is not null then
    return coalesce(sha256(convert_to(p_notes::json ->> 'digest', 'UTF8')),
                    "pawl".input_hash_v1(p_input, null) || "pawl".input_hash_v1(p_notes, null));
  end if;
  return int8send(jsonb_hash_extended(p_input::jsonb, 0)) || int8send(jsonb_hash_extended(p_input::jsonb, 1));
end
$function$;

create function pawl.insert_events_v1(p_shard smallint, p_now timestamp with time zone, p_worker uuid, p_lost uuid[], p_are_new boolean, e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms double precision[], e_delay_ms double precision[], e_due_ms double precision[], e_data text[], e_notes text[], e_epochs integer[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
declare
  v_name text := case when cardinality(e_names) = 1 then e_names[1] end;
  v_attempt integer := case when cardinality(e_attempts) = 1 then e_attempts[1] end;
  v_written integer;
begin
  insert into "pawl".event (shard, run_id, seq, at, kind, name, attempt, epoch, began_at, due_at, data, notes, worker_id)
  select p_shard, e.run_id, coalesce(e.seq, e_seqs[1]), p_now, coalesce(e.kind, e_kinds[1]), coalesce(e.name, v_name),
         coalesce(e.attempt, v_attempt), e.epoch, to_timestamp(e.began_ms / 1000.0),
         coalesce(date_trunc('milliseconds', p_now + e.delay_ms * interval '1 millisecond' + interval '999 microseconds'),
                  to_timestamp(e.due_ms / 1000.0)),
         e.data::json, e.notes::json,
         case when coalesce(e.kind, e_kinds[1]) in ('completed', 'failed', 'cancelled', 'timed_out', 'attempt_failed') then p_worker end
    from unnest(e_runs, e_seqs, e_kinds, e_names, e_attempts, e_epochs, e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes)
         e (run_id, seq, kind, name, attempt, epoch, began_ms, delay_ms, due_ms, data, notes)
   where (p_lost is null or e.run_id <> all (p_lost))
     and (p_are_new or not exists (select 1 from "pawl".event h
                                    where h.shard = p_shard and h.run_id = e.run_id and h.seq = coalesce(e.seq, e_seqs[1])
                                   offset 0));
  get diagnostics v_written = row_count;
  return v_written;
end
$function$;

create function pawl.instant_ms_v1(p_option text, p_at timestamp with time zone)
 RETURNS double precision
 LANGUAGE plpgsql
AS $function$
begin
  if not isfinite(p_at) or p_at > '275760-09-13 00:00:00+00' then
    raise exception 'The option "%" of start lies beyond the end of the calendar.', p_option
      using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;
  return ceil(extract(epoch from p_at) * 1000);
end
$function$;

create function pawl.instant_text_v1(p_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
AS $function$
begin
  return to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');
end
$function$;

create function pawl.is_packed_v1(p_shard smallint, p_run uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return exists (select 1
                   from "pawl".run r
                  cross join lateral (
                    select k.run_ids from "pawl".pack k where k.shard = p_shard and k.id = r.pack_id offset 0) k
                  where r.shard = p_shard and r.id = p_run and p_run = any (k.run_ids));
end
$function$;

create function pawl.is_stopping_v1(p_shard smallint, p_child uuid, p_parent uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return exists (select 1 from "pawl".inbox i
                  where i.shard = p_shard and i.run_id = p_child and i.id = "pawl".cancel_from_parent_v1(p_child, p_parent)
                    and i.taken_seq is distinct from 0
                 offset 0);
end
$function$;

create function pawl.keep_worker_v1(p_worker uuid, p_now timestamp with time zone, p_lease_ms integer)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  v_lease_ms integer;
begin
  select w.lease_ms into v_lease_ms from "pawl".worker w where w.id = p_worker and w.ended_at is null for key share;
  -- It rests no longer. What it holds now must not outlive it by more than its own lease.
  if v_lease_ms <> p_lease_ms then
    update "pawl".worker w
       set heard_at = p_now, lease_ms = p_lease_ms
     where w.id = p_worker and w.ended_at is null
       and w.heard_at > p_now - w.lease_ms * interval '1 millisecond';
  end if;
  return found;
end
$function$;

create function pawl.last_positions_v1(p_shard smallint, p_run uuid, p_names text[])
 RETURNS TABLE(name text, "position" integer)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select n.name, s.position
    from unnest(p_names) n (name)
   cross join lateral (
     select s.position
       from "pawl".stream s
      where s.shard = p_shard and s.run_id = p_run and s.name = n.name
      order by s.run_id desc, s.name desc, s.position desc
      limit 1) s;
end
$function$;

create function pawl.later_id_v1(p_id uuid, p_ms integer)
 RETURNS uuid
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return (lpad(to_hex(least(x'ffffffffffff'::bigint, ('x' || left(replace(p_id::text, '-', ''), 12))::bit(48)::bigint + p_ms)), 12, '0')
          || repeat(case when p_id > 'fffffff0-0000-0000-0000-000000000000' then 'f' else '0' end, 20))::uuid;
end
$function$;

create function pawl.limit_idling_v1(p_idle interval)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_idle interval := current_setting('idle_in_transaction_session_timeout')::interval;
begin
  if p_idle is not null and (v_idle = interval '0' or v_idle > p_idle) then
    perform set_config('idle_in_transaction_session_timeout', (extract(epoch from p_idle) * 1000)::integer::text, true);
  end if;
end
$function$;

create function pawl.list_runs_v1(p_shard smallint, p_before uuid, p_after uuid, p_status text, p_workflow text, p_queue text, p_tags text[], p_error_code text, p_limit integer, p_look integer)
 RETURNS TABLE(next_id uuid, run pawl.runs)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off'
AS $function$
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
    v_look := array(select s.run_id from "pawl".stopped s
                     where s.shard = p_shard and s.error_code = p_error_code and s.run_id < v_before and s.run_id > v_after
                     order by s.error_code desc, s.run_id desc limit p_look);
  elsif p_tags is not null then
    v_look := array(select t.run_id from "pawl".tag t
                     where t.shard = p_shard and t.tag = p_tags[1] and t.run_id < v_before and t.run_id > v_after
                     order by t.tag desc, t.run_id desc limit p_look);
  elsif p_status in ('failed', 'cancelled', 'timed_out', 'expired') then
    v_look := array(select s.run_id from "pawl".stopped s
                     where s.shard = p_shard and s.status = p_status and s.run_id < v_before and s.run_id > v_after
                     order by s.status desc, s.run_id desc limit p_look);
  elsif p_status = 'running' then
    v_look := array(select m.run_id
                      from ((select l.run_id from "pawl".lease l
                              where l.shard = p_shard and l.run_id < v_before and l.run_id > v_after
                              order by l.run_id desc limit p_look)
                            union all
                            select u.run_id
                              from (select k.run_ids from "pawl".pack k
                                     where k.shard = p_shard and k.worker_id is not null
                                     order by k.worker_id, k.claimed_at offset 0) k
                             cross join unnest(k.run_ids) u (run_id)
                             where u.run_id < v_before and u.run_id > v_after) m
                     order by m.run_id desc limit p_look);
  elsif p_status in ('paused', 'blocked') then
    v_look := array(select p.run_id from "pawl".parked p
                     where p.shard = p_shard and p.reason = p_status and p.reason <> 'waiting'
                       and p.run_id < v_before and p.run_id > v_after
                     order by p.reason desc, p.run_id desc limit p_look);
  elsif p_status = 'waiting' then
    v_look := array(select p.run_id from "pawl".parked p
                     where p.shard = p_shard and p.run_id < v_before and p.run_id > v_after
                     order by p.run_id desc limit p_look);
  elsif p_status = 'pending' then
    -- A pack has the id of its last run, and its runs were made within a second: those from the floor on are in so many packs that end
    -- before the page does, or in one that ends within a second of it. What is older is for the next page.
    v_newest := "pawl".later_id_v1(v_before, 1001);
    v_floor := coalesce((select k.id from "pawl".pack k
                          where k.shard = p_shard and k.id < v_before and k.worker_id is null
                          order by k.id desc offset p_look / 32 limit 1), v_after);
    v_look := array(select m.run_id
                      from ((select y.run_id from "pawl".ready y
                              where y.shard = p_shard and y.run_id < v_before and y.run_id > v_after and y.run_id >= v_floor
                              order by y.run_id desc limit p_look)
                            union all
                            select u.run_id
                              from (select k.run_ids from "pawl".pack k
                                     where k.shard = p_shard and k.id < v_newest and k.id >= v_floor and k.run_ids[1] < v_before
                                       and k.worker_id is null
                                     order by k.id desc) k
                             cross join unnest(k.run_ids) u (run_id)
                             where u.run_id < v_before and u.run_id > v_after and u.run_id >= v_floor
                            union all
                            (select p.run_id from "pawl".parked p
                              where p.shard = p_shard and p.reason = 'delayed'
                                and p.run_id < v_before and p.run_id > v_after and p.run_id >= v_floor
                              order by p.reason desc, p.run_id desc limit p_look)) m
                     order by m.run_id desc limit p_look);
  else
    v_look := array(select r.id from "pawl".run r
                     where r.shard = p_shard and r.id < v_before and r.id > v_after
                     order by r.id desc limit p_look);
  end if;

  v_found := array(
    select r.id
      from unnest(v_look) with ordinality c (id, place)
     cross join lateral (
       select r.id
         from "pawl".runs r
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
    return query select v_next, null::"pawl".runs where v_next is not null;
    return;
  end if;
  return query
  select v_next, r
    from unnest(v_found) with ordinality f (id, place)
   cross join lateral (
     select r from "pawl".runs r where r.shard = p_shard and r.id = f.id offset 0) r;
end
$function$;

create function pawl.list_workers_v1(p_ended_within_ms double precision, p_limit integer)
 RETURNS TABLE(id uuid, host text, pid integer, queues text[], workflows text[], concurrency integer, lease_ms double precision, settings text, started_ms double precision, heard_ms double precision, ended_ms double precision, is_alive boolean, long_steps text, sample_ms double precision, sample_held integer, memory_bytes double precision, cpu_ratio double precision, lag_ms double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_ids uuid[];
begin
  v_ids := array(select w.id from "pawl".worker w where w.swept_at is null
                  union
                 select w.id from "pawl".worker w where w.ended_at >= v_now - p_ended_within_ms * interval '1 millisecond');
  return query
  select w.id, w.host, w.pid, w.queues, w.workflows, w.concurrency, w.lease_ms::float8, w.settings::text,
         floor(extract(epoch from w.started_at) * 1000)::float8, floor(extract(epoch from w.heard_at) * 1000)::float8,
         floor(extract(epoch from w.ended_at) * 1000)::float8,
         w.ended_at is null and w.heard_at > v_now - w.lease_ms * interval '1 millisecond',
         w.long_steps::text, floor(extract(epoch from s.at) * 1000)::float8, s.held, s.memory_bytes::float8,
         s.cpu_ratio::float8, s.lag_ms::float8
    from "pawl".worker w
    left join lateral (
      select s.at, s.held, s.memory_bytes, s.cpu_ratio, s.lag_ms
        from "pawl".worker_sample s
       where s.worker_id = w.id
       order by s.at desc
       limit 1) s on true
   where w.id = any (v_ids)
     and (w.ended_at is null or w.ended_at >= v_now - p_ended_within_ms * interval '1 millisecond')
   order by w.started_at desc, w.id desc
   limit p_limit;
end
$function$;

create function pawl.load_history_v1(p_shard smallint, p_run uuid, p_after_seq integer)
 RETURNS TABLE(seq integer, kind text, name text, attempt integer, data text, notes text, at_ms double precision, began_ms double precision, due_ms double precision, worker_id uuid, format smallint)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
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
      from "pawl".event e
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
$function$;

create function pawl.load_short_histories_v1(p_shard smallint, p_runs uuid[], p_after_seqs integer[])
 RETURNS TABLE(place integer, seq integer, kind text, name text, attempt integer, data text, notes text, at_ms double precision, began_ms double precision, due_ms double precision, worker_id uuid, format smallint)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
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
               select e.* from "pawl".event e
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
$function$;

create function pawl.lock_free_runs_v1(p_shard smallint, p_runs uuid[], p_with_parents boolean)
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
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
    v_locked := v_locked || "pawl".parents_of_v1(p_shard, p_runs);
  end if;
  v_locked := array(
    select r.id from "pawl".run r
     where r.shard = p_shard and r.id = any (v_locked)
     order by r.id
       for no key update skip locked);

  -- A record, a claim and a due timer hold only the row in the room, or the pack. Packs come first: who is in none by then, or no
  -- longer, is met in a room.
  v_packs := array(select distinct r.pack_id from "pawl".run r
                    where r.shard = p_shard and r.id = any (v_locked) and "pawl".is_packed_v1(p_shard, r.id));
  if v_packs <> '{}' then
    v_packs := array(select k from unnest(v_packs) k
                     except
                     select k.id from (select k.id from "pawl".pack k
                                        where k.shard = p_shard and k.id = any (v_packs) for update skip locked) k);
  end if;
  v_busy := array(select r.id from "pawl".run r
                   where r.shard = p_shard and r.id = any (v_locked) and (r.pack_id = any (v_packs)) is true);
  v_busy := v_busy || array(
    (select l.run_id from "pawl".lease l where l.shard = p_shard and l.run_id = any (v_locked)
      union all
     select y.run_id from "pawl".ready y where y.shard = p_shard and y.run_id = any (v_locked)
      union all
     select p.run_id from "pawl".parked p where p.shard = p_shard and p.run_id = any (v_locked))
    except
    (select l.run_id from (select l.run_id from "pawl".lease l
                            where l.shard = p_shard and l.run_id = any (v_locked) for update skip locked) l
      union all
     select y.run_id from (select y.run_id from "pawl".ready y
                            where y.shard = p_shard and y.run_id = any (v_locked) for update skip locked) y
      union all
     select p.run_id from (select p.run_id from "pawl".parked p
                            where p.shard = p_shard and p.run_id = any (v_locked) for update skip locked) p));
  return array(select r.id from "pawl".run r
                where r.shard = p_shard and r.id = any (v_locked) and r.id = any (p_runs) and r.id <> all (v_busy)
                  and (not p_with_parents or r.parent_id is null or (r.parent_id = any (v_locked) and r.parent_id <> all (v_busy))));
end
$function$;

create function pawl.lock_leases_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[] DEFAULT NULL::integer[], p_servers double precision[] DEFAULT NULL::double precision[])
 RETURNS pawl.held
 LANGUAGE plpgsql
AS $function$
declare
  v_held "pawl".held;
  v_epochs integer[];
begin
  select array_agg(l.run_id), array_agg(l.run_id) filter (where l.told), array_agg(l.epoch)
    into v_held.runs, v_held.told, v_epochs
    from (select l.run_id, l.epoch, l.told
            from "pawl".lease l
           where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = p_worker) is true
           order by l.run_id
             for update) l;
  -- What is missing may be held in a pack, or may have been given its lease since this looked.
  if v_held.runs is distinct from p_runs and (v_held.runs is null or not v_held.runs @> p_runs) then
    perform "pawl".unpack_held_v1(p_shard, p_worker, p_runs);
    select array_agg(l.run_id), array_agg(l.run_id) filter (where l.told), array_agg(l.epoch)
      into v_held.runs, v_held.told, v_epochs
      from (select l.run_id, l.epoch, l.told
              from "pawl".lease l
             where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = p_worker) is true
             order by l.run_id
               for update) l;
  end if;
  if v_held.runs = p_runs and v_epochs = p_epochs and (p_known is null or p_servers = array["pawl".server_v1()]) then
    return v_held;
  end if;
  -- A run that is named twice is held only if it is so by both.
  v_held.runs := array(
    select h.run_id
      from (select i.run_id, coalesce(i.known, p_known[1], 0) as known, l.epoch = i.epoch as is_held
              from unnest(p_runs, p_epochs, p_known) i (run_id, epoch, known)
              left join unnest(v_held.runs, v_epochs) l (run_id, epoch) on l.run_id = i.run_id) h
     group by h.run_id
    having coalesce(bool_and(h.is_held), false)
       and bool_and(h.known = 0 or exists (select 1 from "pawl".event e
                                            where e.shard = p_shard and e.run_id = h.run_id and e.seq = h.known offset 0)));
  v_held.told := (select array_agg(t) from unnest(v_held.told) t where t = any (v_held.runs));
  return v_held;
end
$function$;

create function pawl.lost_runs_v1(p_runs uuid[], p_held uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if cardinality(p_runs) = cardinality(p_held) then
    return null;
  end if;
  return array(select r from unnest(p_runs) r except select h from unnest(p_held) h);
end
$function$;

create function pawl.move_messages_v1(p_shard smallint, p_from uuid[], p_to uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_told uuid[];
begin
  with unread as materialized (
    select i.place, n.new_id, r.first_id, i.idempotency_key
      from unnest(p_from, p_to) n (old_id, new_id)
     cross join lateral (
       select r.first_id from "pawl".run r where r.shard = p_shard and r.id = n.new_id offset 0) r
     cross join lateral (
       select i.ctid as place, i.topic, i.idempotency_key
         from "pawl".inbox i
        where i.shard = p_shard and i.run_id = n.old_id and i.taken_seq is null
          for update) i
     where i.topic <> 'child'
  ), gone as (
    update "pawl".inbox i
       set taken_seq = 0, idempotency_key = null
      from unread u
     where i.ctid = u.place
    returning u.new_id, u.first_id, u.idempotency_key, i.run_id, i.id, i.sent_to, i.sent_at, i.topic, i.name, i.data, i.notes
  ), moved as (
    insert into "pawl".inbox (shard, run_id, id, chain_id, sent_to, sent_at, topic, name, idempotency_key, data, notes)
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
$function$;

create function pawl.new_id_v1(p_shard smallint)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
declare
  v_us bigint := floor(extract(epoch from clock_timestamp()) * 1000000);
  v_random text := replace(gen_random_uuid()::text, '-', '');
begin
  return lpad(to_hex(v_us / 1000), 12, '0')
    || to_hex(28672 | ((v_us % 1000) * 4096 / 1000)::integer)
    || to_hex(32768 | (p_shard::integer << 4) | ('x' || left(v_random, 1))::bit(4)::integer)
    || right(v_random, 12);
end
$function$;

create function pawl.new_run_v1(p_id uuid, p_workflow text, p_input json, p_version integer, p_key text, p_queue text, p_priority integer, p_start_at timestamp with time zone, p_expires_at timestamp with time zone, p_deadline_at timestamp with time zone, p_tags text[])
 RETURNS json
 LANGUAGE plpgsql
AS $function$
begin
  return json_strip_nulls(json_build_object(
    'id', p_id, 'workflow', p_workflow, 'version', coalesce(p_version, 1),
    'queue', coalesce(p_queue, 'default'), 'priority', coalesce(p_priority, 0),
    'input', p_input::text, 'key', p_key, 'tags', to_json(p_tags), 'raw', true,
    'start_ms', "pawl".instant_ms_v1('start_at', p_start_at),
    'expires_ms', "pawl".instant_ms_v1('expires_at', p_expires_at),
    'deadline_ms', "pawl".instant_ms_v1('deadline_at', p_deadline_at)));
end
$function$;

create function pawl.newest_seq_v1(p_shard smallint, p_run uuid)
 RETURNS integer
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return coalesce((select e.seq from "pawl".event e
                    where e.shard = p_shard and e.run_id = p_run
                    order by e.seq desc limit 1), 0);
end
$function$;

create function pawl.note_looks_v1(p_shard smallint, p_held uuid[], p_runs uuid[], p_looks integer[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  with looking as materialized (
    select l.place, i.look
      from unnest(p_runs, p_looks) i (run_id, look)
     cross join lateral (
       select l.ctid as place
         from "pawl".lease l
        where l.shard = p_shard and l.run_id = i.run_id and l.looks < i.look
       offset 0) l
     where i.run_id = any (p_held)
  )
  update "pawl".lease l set told = false, looks = i.look from looking i where l.ctid = i.place;
end
$function$;

create function pawl.open_transaction_v1(p_token text, p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_idle interval)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  perform set_config('pawl.transaction', p_token, true);
  perform "pawl".limit_idling_v1(p_idle);
  return case when exists (select 1 from "pawl".lease l
                            where l.shard = p_shard and l.run_id = p_run and l.epoch = p_epoch
                              and (l.worker_id = p_worker) is true)
                or p_epoch = 1 and "pawl".packs_of_v1(p_shard, array[p_run], p_worker) <> '{}'
              then 'open' else 'lost' end;
end
$function$;

create function pawl.outermost_scope_v1(p_name text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog'
AS $function$
begin
  return regexp_replace(
    regexp_replace(substring(p_name from '^((?:\\.|[^\\/])*)/'), '^((?:\\.|[^\\#])*)#[0-9]+$', '\1'), '\\(.)', '\1', 'g');
end
$function$;

create function pawl.packs_of_v1(p_shard smallint, p_runs uuid[], p_worker uuid)
 RETURNS uuid[]
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return array(
    select distinct k.id
      from "pawl".run r
     cross join lateral (
       select k.id, k.run_ids, k.worker_id from "pawl".pack k where k.shard = p_shard and k.id = r.pack_id offset 0) k
     where r.shard = p_shard and r.id = any (p_runs) and r.pack_id is not null and r.id = any (k.run_ids)
       and (p_worker is null or k.worker_id = p_worker));
end
$function$;

create function pawl.parents_of_v1(p_shard smallint, p_runs uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
begin
  return (
    select array_agg(c.parent_id)
      from (select r.parent_id from "pawl".run r where r.shard = p_shard and r.id = any (p_runs) offset 0) c
     where c.parent_id is not null);
end
$function$;

create function pawl.park_runs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers double precision[], p_looks integer[], p_last_seqs integer[], p_reasons text[], p_due_ms double precision[], p_fires text[], p_delay_ms double precision[], p_wants text[], p_failed boolean[], p_children json, p_written json, e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms double precision[], e_delay_ms double precision[], e_due_ms double precision[], e_data text[], e_notes text[], e_takes uuid[])
 RETURNS TABLE(run_id uuid, outcome text, told boolean, seq integer, due_ms double precision, now_ms double precision, message_id uuid, topic text, name text, data text, notes text, sent_ms double precision, sent_to uuid)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_held uuid[];
  v_late uuid[];
  v_lost uuid[];
  v_told uuid[];
  v_woken uuid[];
  v_due timestamptz[];
  v_fires text[];
  v_now timestamptz;
  v_now_ms float8;
begin
  e_runs := coalesce(e_runs, case when e_seqs is not null then p_runs end);
  perform 1 from (select 1 from "pawl".run r
                   where r.shard = p_shard and r.id = any (p_runs)
                   order by r.id for no key update) r;
  v_held := ("pawl".lock_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers)).runs;
  -- An earlier try of a holder that has gone on since is too late: it knows neither the history nor what the run wants.
  v_late := array(
    select i.run_id
      from unnest(p_runs, p_last_seqs) i (run_id, last_seq)
     where exists (select 1 from "pawl".event e
                    where e.shard = p_shard and e.run_id = i.run_id and e.seq > i.last_seq
                   offset 0));
  if v_late <> '{}' then
    v_held := array(select h from unnest(v_held) h except select r from unnest(v_late) r);
  end if;
  v_lost := "pawl".lost_runs_v1(p_runs, v_held);
  v_now := clock_timestamp();
  v_now_ms := floor(extract(epoch from v_now) * 1000);

  if e_runs is not null then
    perform "pawl".append_events_v1(p_shard, v_now, p_worker, v_lost, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                      e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_takes);
  end if;
  if p_children is not null then
    perform "pawl".put_children_v1(p_shard, v_now, p_children, v_lost);
  end if;
  if p_written is not null then
    perform "pawl".write_streams_v1(p_shard, v_now, p_written, v_lost);
  end if;

  -- Due: the earliest of what the holder knows and the timers set just now; and which timer fires by that. p_fires '': none may.
  select array_agg(d.due_at order by d.place), array_agg(d.fires order by d.place) into v_due, v_fires
    from (select min(d.place) as place, min(d.due_at) as due_at, (array_agg(d.fires order by d.due_at, d.seq))[1] as fires
            from (select i.run_id, i.place, -1 as seq, to_timestamp(i.due_ms / 1000.0) as due_at, i.fires
                    from unnest(p_runs, p_due_ms, p_fires) with ordinality i (run_id, due_ms, fires, place)
                   union all
                  select i.run_id, null, 0,
                         date_trunc('milliseconds', v_now + i.delay_ms * interval '1 millisecond' + interval '999 microseconds'), null
                    from unnest(p_runs, p_delay_ms) i (run_id, delay_ms)
                   where i.delay_ms is not null
                   union all
                  select n.run_id, null, e.seq, e.due_at, e.name
                    from unnest(e_runs, e_seqs, e_kinds) n (run_id, seq, kind)
                   cross join lateral (
                     select e.seq, e.due_at, e.name
                       from "pawl".event e
                      where e.shard = p_shard and e.run_id = n.run_id and e.seq = coalesce(n.seq, e_seqs[1])
                     offset 0) e
                   where coalesce(n.kind, e_kinds[1]) = 'timer_set') d
           group by d.run_id) d;

  -- An attempt that has failed is over, and counts: the run parks, and is woken like one that was told afterwards.
  select array_agg(i.run_id) filter (where not i.failed), array_agg(i.run_id) filter (where i.failed) into v_told, v_woken
    from unnest(p_runs, p_wants, p_failed) i (run_id, wants, failed)
   where (v_lost is null or i.run_id <> all (v_lost))
     and exists (select 1 from "pawl".inbox m
                  where m.shard = p_shard and m.run_id = i.run_id and m.taken_seq is null
                    and m.topic = any (i.wants::text[])
                 offset 0);
  if v_told is not null then
    perform "pawl".note_looks_v1(p_shard, v_told, p_runs, p_looks);
  end if;

  with parking as materialized (
    select l.place, i.last_seq, i.reason, i.due_at, i.wants::text[] as wants, i.failed::integer as failed,
           case when i.reason = 'waiting' and i.due_at is not null and (i.said = '') is not true then i.fires end as fires
      from unnest(p_runs, p_epochs, p_last_seqs, p_reasons, v_due, v_fires, p_fires, p_wants, p_failed)
           i (run_id, epoch, last_seq, reason, due_at, fires, said, wants, failed)
     cross join lateral (
       select l.ctid as place
         from "pawl".lease l
        where l.shard = p_shard and l.run_id = i.run_id and l.epoch = i.epoch and (l.worker_id = p_worker) is true
       offset 0) l
     where (v_lost is null or i.run_id <> all (v_lost))
       and (v_told is null or i.run_id <> all (v_told))
       and (i.due_at is null or i.due_at > v_now or i.failed or i.reason in ('paused', 'blocked'))
  ), gone as (
    delete from "pawl".lease l
     using parking i
     where l.ctid = i.place
    returning l.run_id, l.epoch, i.last_seq, l.attempt + i.failed as attempt, l.failures + i.failed as failures,
              i.reason, i.due_at, i.fires, i.wants
  )
  insert into "pawl".parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes,
                               suspicion, reason, wants, fires)
  select p_shard, g.run_id, v_now, g.due_at, g.epoch, g.last_seq, g.attempt, g.failures, 0, 0, g.reason, g.wants, g.fires
    from gone g;
  if v_woken is not null then
    perform "pawl".wake_runs_v1(p_shard, v_now, v_woken);
  end if;

  return query
  select i.run_id,
         case when l.told is null then 'parked' when i.run_id = any (v_told) then 'told' else 'due' end,
         coalesce(l.told, false), null::integer, floor(extract(epoch from i.due_at) * 1000)::float8, v_now_ms,
         null::uuid, null, null, null, null, null::float8, null::uuid
    from unnest(p_runs, v_due) i (run_id, due_at)
    left join lateral (
      select l.told
        from "pawl".lease l
       where l.shard = p_shard and l.run_id = i.run_id
      offset 0) l on true
   where v_lost is null or i.run_id <> all (v_lost);
  if e_delay_ms is not null or e_due_ms is not null then
    return query
    select e.run_id, null, null::boolean, e.seq::integer, floor(extract(epoch from e.due_at) * 1000)::float8, v_now_ms,
           null::uuid, null, null, null, null, null::float8, null::uuid
      from unnest(e_runs, e_seqs, e_kinds) n (run_id, seq, kind)
     cross join lateral (
       select e.run_id, e.seq, e.due_at
         from "pawl".event e
        where e.shard = p_shard and e.run_id = n.run_id and e.seq = coalesce(n.seq, e_seqs[1])
       offset 0) e
     where coalesce(n.kind, e_kinds[1]) = 'timer_set' and (v_lost is null or n.run_id <> all (v_lost));
  end if;
  if v_told is not null then
    return query
    select i.run_id, null, null::boolean, null::integer, null::float8, v_now_ms, i.id, i.topic, i.name, i.data::text, i.notes::text,
           floor(extract(epoch from i.sent_at) * 1000)::float8, i.sent_to
      from "pawl".inbox i
     where i.shard = p_shard and i.run_id = any (v_told) and i.taken_seq is null
     order by i.sent_at, i.id;
  end if;
end
$function$;

create function pawl.pause_runs_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_paused uuid[];
begin
  v_paused := array(
    select r from unnest(p_runs) r
     where exists (select 1 from "pawl".inbox i
                    where i.shard = p_shard and i.run_id = r and i.taken_seq is null and i.topic = 'pause' offset 0)
       and not exists (select 1 from "pawl".inbox i
                        where i.shard = p_shard and i.run_id = r and i.taken_seq is null and i.topic = 'cancel' offset 0));

  -- Two statements: a due timer may move a run from parked to ready in between.
  with still as (
    update "pawl".parked p
       set reason = 'paused', wants = '{cancel,resume}', last_seq = p.last_seq + 1, parked_at = p_now, fires = null,
           due_at = (select r.deadline_at from "pawl".run r where r.shard = p_shard and r.id = p.run_id offset 0)
     where p.shard = p_shard and p.run_id = any (v_paused) and p.reason <> 'paused'
    returning p.run_id, p.last_seq
  )
  insert into "pawl".event (shard, run_id, seq, at, kind)
  select p_shard, s.run_id, s.last_seq, p_now, 'paused' from still s;

  with gone as (
    delete from "pawl".ready y
     where y.shard = p_shard and y.run_id = any (v_paused)
    returning y.run_id, y.epoch, y.last_seq + 1 as last_seq, y.attempt, y.failures, y.crashes, y.suspicion
  ), put as (
    insert into "pawl".parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion,
                                 reason, wants)
    select p_shard, g.run_id, p_now,
           (select r.deadline_at from "pawl".run r where r.shard = p_shard and r.id = g.run_id offset 0), g.epoch, g.last_seq, g.attempt, g.failures, g.crashes, g.suspicion,
           'paused', '{cancel,resume}'::text[]
      from gone g
  )
  insert into "pawl".event (shard, run_id, seq, at, kind)
  select p_shard, g.run_id, g.last_seq, p_now, 'paused' from gone g;
end
$function$;

create function pawl.put_children_v1(p_shard smallint, p_now timestamp with time zone, p_children json, p_lost uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_skip uuid[];
begin
  if p_lost is not null then
    select array_agg(n.id) into v_skip
      from json_to_recordset(p_children) as n (id uuid, parent_id uuid)
     where n.parent_id = any (p_lost);
  end if;
  perform "pawl".put_runs_v1(p_shard, p_now, p_children, v_skip, null, null);
end
$function$;

create function pawl.put_plain_runs_v1(p_shard smallint, p_now timestamp with time zone, n_ids uuid[], n_workflows text[], n_versions integer[], n_queues text[], n_priorities integer[], n_inputs text[], n_notes text[], p_packed boolean, p_holder uuid, p_crash_limit smallint, p_paused text[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_workflow text := n_workflows[1];
  v_version integer := n_versions[1];
  v_queue text := n_queues[1];
  v_priority integer := n_priorities[1];
  v_count integer := cardinality(n_ids);
  v_packed boolean := p_packed and p_holder is null;
  v_new integer;
  v_held uuid[];
begin
  -- `on conflict` writes a second WAL record for each: of many it is left to the index to say that one is there, as for facts.
  if v_count >= 16 then
    begin
      insert into "pawl".run (shard, id, workflow, version, queue, priority, input, input_notes, created_at, depth, pack_id)
      select p_shard, n.id, coalesce(n.workflow, v_workflow), coalesce(n.version, v_version), coalesce(n.queue, v_queue),
             coalesce(n.priority, v_priority), n.input::json, n.notes::json, p_now, 0,
             case when v_packed then n_ids[least((n.place + 63) / 64 * 64, v_count)] end
        from unnest(n_ids, n_workflows, n_versions, n_queues, n_priorities, n_inputs, n_notes) with ordinality
             n (id, workflow, version, queue, priority, input, notes, place);
      get diagnostics v_new = row_count;
    exception when unique_violation then
    end;
  end if;
  if v_new is null then
    insert into "pawl".run (shard, id, workflow, version, queue, priority, input, input_notes, created_at, depth, pack_id)
    select p_shard, n.id, coalesce(n.workflow, v_workflow), coalesce(n.version, v_version), coalesce(n.queue, v_queue),
           coalesce(n.priority, v_priority), n.input::json, n.notes::json, p_now, 0,
           case when v_packed then n_ids[least((n.place + 63) / 64 * 64, v_count)] end
      from unnest(n_ids, n_workflows, n_versions, n_queues, n_priorities, n_inputs, n_notes) with ordinality
           n (id, workflow, version, queue, priority, input, notes, place)
    on conflict (shard, id) do nothing;
    get diagnostics v_new = row_count;
  end if;
  -- Most often all are new, and named once. Those that were there are in a room, or have ended.
  if v_packed and v_new = v_count then
    insert into "pawl".pack (shard, id, ready_at, priority, version, queue, workflow, run_ids, inputs)
    select p_shard, n_ids[least(f + 63, v_count)], p_now, v_priority, v_version, v_queue, v_workflow, n_ids[f : f + 63],
           case when n_notes is null and coalesce(i.bytes, 0) <= 3072 then coalesce(array_to_json(n_inputs[f : f + 63])::text, '[]') end
      from generate_series(1, v_count, 64) f
     cross join lateral (select sum(octet_length(t)) as bytes from unnest(n_inputs[f : f + 63]) t) i;
    perform "pawl".hint_ready_v1(n_queues);
    return null;
  end if;
  if v_new < v_count then
    select array_agg(n.id), array_agg(n.workflow), array_agg(n.version), array_agg(n.queue), array_agg(n.priority)
      into n_ids, n_workflows, n_versions, n_queues, n_priorities
      from (select distinct on (n.id) n.id, coalesce(n.workflow, v_workflow) as workflow, coalesce(n.version, v_version) as version,
                   coalesce(n.queue, v_queue) as queue, coalesce(n.priority, v_priority) as priority
              from unnest(n_ids, n_workflows, n_versions, n_queues, n_priorities) n (id, workflow, version, queue, priority)
             where not exists (select 1 from "pawl".ready y where y.shard = p_shard and y.run_id = n.id offset 0)
               and not exists (select 1 from "pawl".lease l where l.shard = p_shard and l.run_id = n.id offset 0)
               and not exists (select 1 from "pawl".parked p where p.shard = p_shard and p.run_id = n.id offset 0)
               and not exists (select 1 from "pawl".event e where e.shard = p_shard and e.run_id = n.id offset 0)
               and not "pawl".is_packed_v1(p_shard, n.id)) n;
    if n_ids is null then
      return null;
    end if;
  end if;

  if p_holder is not null then
    insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                crashes, suspicion, crash_limit, told)
    select p_shard, n.id, p_holder, p_now, p_now, 1, 0, 1, 0, 0, 0, p_crash_limit, false
      from unnest(n_ids, n_queues) n (id, queue)
     where p_paused = '{}' or coalesce(n.queue, v_queue) <> all (p_paused);
    get diagnostics v_new = row_count;
    if v_new = cardinality(n_ids) then
      return n_ids;
    end if;
    v_held := array(select n.id from unnest(n_ids, n_queues) n (id, queue) where coalesce(n.queue, v_queue) <> all (p_paused));
  end if;

  insert into "pawl".ready (shard, run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes,
                              suspicion, told, queue, workflow)
  select p_shard, n.id, p_now, 0, 0, 1, coalesce(n.priority, v_priority), coalesce(n.version, v_version), 0, 0, 0, false,
         coalesce(n.queue, v_queue), coalesce(n.workflow, v_workflow)
    from unnest(n_ids, n_workflows, n_versions, n_queues, n_priorities) n (id, workflow, version, queue, priority)
   where v_held is null or coalesce(n.queue, v_queue) = any (p_paused);
  if v_held is not null then
    n_queues := array(select q from unnest(n_queues) q where q = any (p_paused));
  end if;
  perform "pawl".hint_ready_v1(n_queues);
  return v_held;
end
$function$;

create function pawl.put_ready_v1(p_shard smallint, p_now timestamp with time zone, p_rooms pawl.room[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_queues text[];
begin
  if p_rooms is null then
    return;
  end if;
  with put as (
    insert into "pawl".ready (shard, run_id, ready_at, expires_at, epoch, last_seq, attempt, priority, version,
                                failures, crashes, suspicion, told, queue, workflow)
    select p_shard, m.run_id, p_now, case when m.epoch = 0 then least(r.expires_at, r.deadline_at) end, m.epoch, m.last_seq, m.attempt, r.priority, r.version,
           m.failures, m.crashes, m.suspicion, m.told, r.queue, r.workflow
      from unnest(p_rooms) m
     cross join lateral (
       select r.expires_at, r.deadline_at, r.priority, r.version, r.queue, r.workflow
         from "pawl".run r
        where r.shard = p_shard and r.id = m.run_id
       offset 0) r
    returning queue
  )
  select array_agg(distinct p.queue) into v_queues from put p;
  perform "pawl".hint_ready_v1(v_queues);
end
$function$;

create function pawl.put_runs_v1(p_shard smallint, p_now timestamp with time zone, p_runs json, p_skip uuid[], p_holder uuid, p_crash_limit smallint)
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_queues text[];
  v_held uuid[];
begin
  with born as (
    insert into "pawl".run (shard, id, workflow, version, queue, priority, input, input_notes, key, created_at,
                              start_at, expires_at, deadline_at, parent_id, parent_request, root_id, depth,
                              tags, retry, raw, detached, forked_from)
    select p_shard, n.id, n.workflow, n.version, n.queue, n.priority, n.input::json, n.notes::json, n.key, p_now,
           to_timestamp(n.start_ms / 1000.0), to_timestamp(n.expires_ms / 1000.0),
           least(to_timestamp(n.deadline_ms / 1000.0), case when n.detached is not true then parent.deadline_at end),
           n.parent_id, n.parent_request, coalesce(parent.root_id, parent.id), coalesce(parent.depth + 1, 0),
           n.tags, n.retry, n.raw, n.detached, n.forked_from
      from json_to_recordset(p_runs) as n (id uuid, workflow text, version integer, queue text, priority integer,
             input text, notes text, key text, start_ms float8, expires_ms float8, deadline_ms float8,
             parent_id uuid, parent_request text, tags text[], retry json, raw boolean, detached boolean,
             forked_from uuid)
      left join lateral (
        select p.id, p.root_id, p.depth, p.deadline_at
          from "pawl".run p
         where p.shard = p_shard and p.id = n.parent_id
        offset 0) parent on true
     where p_skip is null or n.id <> all (p_skip)
    on conflict (shard, id) do nothing
    returning id, queue, workflow, version, priority, least(expires_at, deadline_at) as expires_at, start_at, tags,
              p_holder is not null and (start_at > p_now) is not true
                and (least(expires_at, deadline_at) <= p_now) is not true
                and not exists (select 1 from "pawl".queue q
                                 where q.name = run.queue and q.paused_at is not null offset 0) as is_held
  ), tagged as (
    insert into "pawl".tag (shard, run_id, tag)
    select p_shard, b.id, t
      from born b
     cross join unnest(b.tags) t
    on conflict do nothing
  ), delayed as (
    insert into "pawl".parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes,
                                 suspicion, reason, wants)
    select p_shard, b.id, p_now, least(b.start_at, b.expires_at), 0, 0, 1, 0, 0, 0, 'delayed', '{cancel,pause}'::text[]
      from born b
     where b.start_at > p_now
  ), now_ready as (
    insert into "pawl".ready (shard, run_id, ready_at, expires_at, epoch, last_seq, attempt, priority, version,
                                failures, crashes, suspicion, told, queue, workflow)
    select p_shard, b.id, p_now, b.expires_at, 0, 0, 1, b.priority, b.version, 0, 0, 0, false, b.queue, b.workflow
      from born b
     where not b.is_held and (b.start_at is null or b.start_at <= p_now)
    returning queue
  ), held as (
    insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                crashes, suspicion, crash_limit, told)
    select p_shard, b.id, p_holder, p_now, p_now, 1, 0, 1, 0, 0, 0, p_crash_limit, false
      from born b
     where b.is_held
    returning run_id
  )
  select (select array_agg(distinct r.queue) from now_ready r), (select array_agg(h.run_id) from held h) into v_queues, v_held;

  if v_queues is not null then
    perform "pawl".hint_ready_v1(v_queues);
  end if;
  return v_held;
end
$function$;

create function pawl.read_answers_v1(p_shard smallint, p_runs uuid[], p_ids uuid[], p_keys text[])
 RETURNS TABLE(topic text, seq integer, name text, data text, notes text, is_ended boolean)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select i.topic::text, e.seq::integer, e.name, e.data::text, e.notes::text, r.is_live is null
    from unnest(p_runs, p_ids, p_keys) with ordinality q (run_id, id, key, place)
    left join lateral (
      select true as is_live
        from "pawl".run r
       where r.shard = p_shard and r.id = q.run_id and "pawl".end_status_v1(p_shard, r.id) is null
      offset 0) r on true
    left join lateral (
      select i.topic, i.answer_seq
        from "pawl".inbox i
       where i.shard = p_shard and i.run_id = q.run_id and i.id = q.id
       union all
      select i.topic, i.answer_seq
        from "pawl".inbox i
       where i.shard = p_shard and i.run_id = q.run_id and i.idempotency_key = q.key
       limit 1) i on true
    left join lateral (
      select e.seq, e.name, e.data, e.notes
        from "pawl".event e
       where e.shard = p_shard and e.run_id = q.run_id and e.seq = i.answer_seq
      offset 0) e on true
   order by q.place;
end
$function$;

create function pawl.read_attempts_v1(p_shard smallint, p_run uuid)
 RETURNS SETOF pawl.attempts
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  return query select a.* from "pawl".attempts a where a.shard = p_shard and a.run_id = p_run order by a.seq;
end
$function$;

create function pawl.read_children_v1(p_shard smallint, p_run uuid, p_after uuid, p_limit integer)
 RETURNS TABLE(id uuid, request text, status text, epoch integer, created_at timestamp with time zone, ended_at timestamp with time zone, error json, error_notes json)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select k.id, k.parent_request, r.status, r.epoch, k.created_at, r.ended_at, r.error, r.error_notes
    from (select k.id, k.parent_request, k.created_at
            from (select k.id, k.parent_request, k.created_at
                    from "pawl".run k
                   where k.parent_id = p_run and (k.shard = p_shard) is true and (p_after is null or k.id > p_after)
                  offset 0) k
           order by k.id
           limit p_limit) k
   cross join lateral (
     select r.status, r.epoch, r.ended_at, r.error, r.error_notes from "pawl".runs r where r.shard = p_shard and r.id = k.id offset 0) r
   order by k.id;
end
$function$;

create function pawl.read_ends_v1(p_shard smallint, p_runs uuid[])
 RETURNS TABLE(id uuid, status text, output text, output_notes text, error text, error_notes text, chain_end uuid)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select r.id, e.status, e.output::text, e.output_notes::text, e.error::text, e.error_notes::text,
         case when r.continued_as is not null then "pawl".chain_end_v1(p_shard, coalesce(r.first_id, r.id)) end
    from "pawl".run r
    left join lateral (
      select e.status, e.output, e.output_notes, e.error, e.error_notes
        from "pawl".endings e
       where e.shard = p_shard and e.run_id = r.id
      offset 0) e on true
   where r.shard = p_shard and r.id = any (p_runs);
end
$function$;

create function pawl.read_inbox_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_looks integer[])
 RETURNS TABLE(run_id uuid, message_id uuid, topic text, name text, data text, notes text, sent_ms double precision, sent_to uuid)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_held uuid[] := ("pawl".lock_leases_v1(p_shard, p_worker, p_runs, p_epochs)).runs;
begin
  perform "pawl".note_looks_v1(p_shard, v_held, p_runs, p_looks);

  return query select h, null::uuid, null, null, null, null, null::float8, null::uuid from unnest(v_held) h;
  return query
  select i.run_id, i.id, i.topic, i.name, i.data::text, i.notes::text, floor(extract(epoch from i.sent_at) * 1000)::float8,
         i.sent_to
    from "pawl".inbox i
   where i.shard = p_shard and i.run_id = any (v_held) and i.taken_seq is null
   order by i.sent_at, i.id;
end
$function$;

create function pawl.read_patches_v1(p_shard smallint, p_workflow text, p_version integer)
 RETURNS TABLE(patch text, since_ms double precision, runs integer, older_runs integer, newer_runs integer)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select p.patch, floor(extract(epoch from p.since) * 1000)::float8, p.runs, p.older_runs, p.newer_runs
    from "pawl".patches p
   where p.shard = p_shard and p.workflow = p_workflow and p.version = p_version
   order by p.since, p.patch;
end
$function$;

create function pawl.read_run_v1(p_shard smallint, p_run uuid)
 RETURNS SETOF pawl.runs
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
begin
  return query select r.* from "pawl".runs r where r.shard = p_shard and r.id = p_run;
end
$function$;

create function pawl.read_stream_v1(p_shard smallint, p_run uuid, p_name text, p_after integer, p_limit integer)
 RETURNS TABLE(is_ended boolean, "position" integer, step text, attempt integer, is_first boolean, is_closing boolean, data text, notes text, at_ms double precision)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
#variable_conflict use_column
begin
  return query
  select "pawl".end_status_v1(p_shard, r.id) is not null, null::integer, null, null::integer, null::boolean, null::boolean, null, null, null::float8
    from "pawl".run r
   where r.shard = p_shard and r.id = p_run;
  return query
  select null::boolean, s.position, s.step, s.attempt, s.is_first, s.is_closing, s.data::text, s.notes::text,
         floor(extract(epoch from s.at) * 1000)::float8
    from (select s.*, sum(coalesce(octet_length(s.data::text), 0) + coalesce(octet_length(s.notes::text), 0))
                        over (order by s.position rows between unbounded preceding and 1 preceding) as bytes_before
            from (select s.* from "pawl".stream s
                   where s.shard = p_shard and s.run_id = p_run and s.name = p_name and s.position > p_after
                   order by s.run_id, s.name, s.position
                   limit p_limit) s) s
   where (s.bytes_before >= 4000000) is not true
   order by s.position;
end
$function$;

create function pawl.record_events_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers double precision[], p_children json, p_written json, e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms double precision[], e_delay_ms double precision[], e_due_ms double precision[], e_data text[], e_notes text[], e_takes uuid[])
 RETURNS TABLE(run_id uuid, told boolean, seq integer, due_ms double precision, now_ms double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_held "pawl".held := "pawl".lock_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers);
  v_lost uuid[] := "pawl".lost_runs_v1(p_runs, v_held.runs);
  v_now timestamptz := clock_timestamp();
begin
  e_runs := coalesce(e_runs, case when e_seqs is not null then p_runs end);
  perform "pawl".append_events_v1(p_shard, v_now, p_worker, v_lost, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                    e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_takes);
  if p_children is not null then
    perform "pawl".put_children_v1(p_shard, v_now, p_children, v_lost);
  end if;
  if p_written is not null then
    perform "pawl".write_streams_v1(p_shard, v_now, p_written, v_lost);
  end if;

  now_ms := floor(extract(epoch from v_now) * 1000);
  return next;
  now_ms := null;
  if v_lost is not null then
    foreach run_id in array v_lost loop
      return next;
    end loop;
  end if;
  if v_held.told is not null then
    told := true;
    foreach run_id in array v_held.told loop
      return next;
    end loop;
  end if;
  if e_delay_ms is not null or e_due_ms is not null then
    return query
    select e.run_id, null::boolean, e.seq::integer, floor(extract(epoch from e.due_at) * 1000)::float8, null::float8
      from unnest(e_runs, e_seqs, e_kinds) n (run_id, seq, kind)
     cross join lateral (
       select e.run_id, e.seq, e.due_at
         from "pawl".event e
        where e.shard = p_shard and e.run_id = n.run_id and e.seq = coalesce(n.seq, e_seqs[1])
       offset 0) e
     where coalesce(n.kind, e_kinds[1]) = 'timer_set' and (v_lost is null or n.run_id <> all (v_lost));
  end if;
end
$function$;

create function pawl.record_in_transaction_v1(p_token text, p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_seq integer, p_patches json, p_kind text, p_name text, p_attempt integer, p_began_ms double precision, p_data text, p_notes text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '5s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_newest integer;
  v_now timestamptz;
  v_patches text[];
  v_first integer;
begin
  if current_setting('pawl.transaction', true) is distinct from p_token then
    return 'outside';
  end if;
  perform "pawl".limit_idling_v1(interval '5 seconds');
  if cardinality(("pawl".lock_leases_v1(p_shard, p_worker, array[p_run], array[p_epoch])).runs) = 0 then
    return 'lost';
  end if;
  v_patches := array(select json_array_elements_text(p_patches));
  v_first := p_seq - cardinality(v_patches);
  v_newest := "pawl".newest_seq_v1(p_shard, p_run);
  if v_newest >= v_first then
    return 'late';
  end if;
  -- As in lock_leases. A transaction that sees what was there at its begin cannot tell.
  if v_newest < v_first - 1 and current_setting('transaction_isolation') = 'read committed' then
    return 'lost';
  end if;
  v_now := clock_timestamp();
  for place in 1 .. cardinality(v_patches) loop
    perform "pawl".append_events_v1(p_shard, v_now, p_worker, null, array[p_run], array[v_first + place - 1], array['patched'],
                                      array[v_patches[place]], null, null, null, null, null, null, null);
  end loop;
  perform "pawl".append_events_v1(p_shard, v_now, p_worker, null, array[p_run], array[p_seq], array[p_kind], array[p_name],
                                    array[p_attempt], array[p_began_ms], null, null, array[p_data], array[p_notes], null);
  return (select json_build_object('told', l.told, 'now_ms', floor(extract(epoch from v_now) * 1000))::text
            from "pawl".lease l
           where l.shard = p_shard and l.run_id = p_run);
end
$function$;

create function pawl.record_step_v1(p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_server double precision, e_seq integer, e_name text, e_attempt integer, e_began_ms double precision, e_data text, e_notes text)
 RETURNS TABLE(now_ms double precision, told boolean)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
declare
  v_now timestamptz;
begin
  if p_server <> "pawl".server_v1() then
    return;
  end if;
  select l.told into record_step_v1.told
    from "pawl".lease l
   where l.shard = p_shard and l.run_id = p_run and (l.worker_id = p_worker) is true and l.epoch = p_epoch
     for update;
  if not found then
    return;
  end if;
  v_now := clock_timestamp();
  insert into "pawl".event (shard, run_id, seq, at, kind, name, attempt, began_at, data, notes)
  values (p_shard, p_run, e_seq, v_now, 'step_completed', e_name, e_attempt, to_timestamp(e_began_ms / 1000.0), e_data::json,
          e_notes::json);
  now_ms := floor(extract(epoch from v_now) * 1000);
  return next;
end
$function$;

create function pawl.recover_leases_v1(p_shard smallint, p_now timestamp with time zone, p_dead uuid[], p_runs uuid[])
 RETURNS TABLE(recovered integer, failed integer)
 LANGUAGE plpgsql
AS $function$
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
  v_runs := array(select l.run_id from "pawl".lease l
                   where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = any (p_dead)) is true
                   order by l.run_id
                     for update skip locked);

  insert into "pawl".event (shard, run_id, seq, at, kind, attempt, began_at, worker_id, data)
  select p_shard, l.run_id,
         "pawl".newest_seq_v1(p_shard, l.run_id) + 1,
         p_now, 'attempt_crashed', l.attempt, l.began_at, l.worker_id,
         json_build_object('workerId', l.worker_id, 'alone', w.held_at_end = 1)
    from "pawl".lease l
   cross join lateral (select w.held_at_end from "pawl".worker w where w.id = l.worker_id offset 0) w
   where l.shard = p_shard and l.run_id = any (v_runs) and l.began_at is not null;

  with crashed as materialized (
    select l.ctid as place, w.alone
      from "pawl".lease l
     cross join lateral (
       select (w.held_at_end = 1)::integer as alone
         from "pawl".worker w
        where w.id = l.worker_id
       offset 0) w
     where l.shard = p_shard and l.run_id = any (v_runs) and l.began_at is not null
  )
  update "pawl".lease l
     set crashes = l.crashes + c.alone,
         suspicion = greatest(l.suspicion + 1, 2 * c.alone),
         attempt = l.attempt + 1
    from crashed c
   where l.ctid = c.place;

  with gone as (
    delete from "pawl".lease l
     where l.shard = p_shard and l.run_id = any (v_runs) and l.began_at is not null and l.crashes >= l.crash_limit
    returning l.run_id, l.epoch, l.attempt - 1 as attempt
  ), fact as (
    insert into "pawl".event (shard, run_id, seq, at, kind, data)
    select p_shard, g.run_id,
           "pawl".newest_seq_v1(p_shard, g.run_id) + 1,
           p_now, 'failed', v_error::json
      from gone g
  )
  select array_agg(g.run_id), array_agg(g.epoch), array_agg(g.attempt) into v_failed, v_epochs, v_attempts from gone g;

  -- Before the parents are told: one of them may be among those given back.
  perform "pawl".return_leases_v1(p_shard, p_now, v_runs);
  if v_failed is not null then
    v_statuses := array_fill('failed'::text, array[cardinality(v_failed)]);
    perform "pawl".wake_runs_v1(p_shard, p_now, "pawl".finish_runs_v1(p_shard, p_now, v_failed,
      "pawl".parents_of_v1(p_shard, v_failed), v_statuses, v_epochs, v_attempts,
      array_fill(v_error, array[cardinality(v_failed)]), null));
    -- Their children are told as in a caller's own transaction: those that somebody is working on hear of it by the hint.
    v_children := "pawl".cancel_children_v1(p_shard, p_now, "pawl".stopped_children_v1(p_shard, v_failed, v_statuses), v_failed);
    if v_children is not null then
      v_free := "pawl".lock_free_runs_v1(p_shard, v_children, true);
      perform "pawl".wake_runs_v1(p_shard, p_now, nullif(v_free, '{}'));
      perform "pawl".hint_runs_v1('s', (select array_agg(c) from unnest(v_children) c where c <> all (v_free)));
    end if;
  end if;
  return query select cardinality(v_runs) - coalesce(cardinality(v_failed), 0), coalesce(cardinality(v_failed), 0);
end
$function$;

create function pawl.redrive_runs_v1(p_shard smallint, p_runs uuid[], p_ended_ms double precision[], p_fresh boolean)
 RETURNS TABLE(run_id uuid, outcome text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz;
  v_redriven uuid[];
  v_rooms "pawl".room[];
begin
  perform 1 from (select 1 from "pawl".run r
                   where r.shard = p_shard and r.id = any (p_runs)
                   order by r.id for no key update) r;
  v_now := clock_timestamp();
  return query
  select i.id, case when r.id is null then 'missing'
                    when e.status is null then 'live'
                    when e.status = 'completed' and (not p_fresh or r.continued_as is not null) then 'completed'
                    when floor(extract(epoch from e.ended_at) * 1000)::float8 <> i.ended_ms then 'live'
                    else 'redriven' end
    from (select distinct on (i.id) i.id, i.ended_ms from unnest(p_runs, p_ended_ms) i (id, ended_ms)) i
    left join lateral (
      select r.id, r.continued_as from "pawl".run r where r.shard = p_shard and r.id = i.id offset 0) r on true
    left join lateral (
      select e.status, e.ended_at from "pawl".endings e where e.shard = p_shard and e.run_id = i.id offset 0) e on true;
  v_redriven := array(
    select distinct r.id
      from unnest(p_runs, p_ended_ms) i (id, ended_ms)
     cross join lateral (
       select r.id, r.continued_as from "pawl".run r where r.shard = p_shard and r.id = i.id offset 0) r
     cross join lateral (
       select e.status, e.ended_at from "pawl".endings e where e.shard = p_shard and e.run_id = i.id offset 0) e
     where (p_fresh and r.continued_as is null or e.status <> 'completed')
       and (floor(extract(epoch from e.ended_at) * 1000)::float8 <> i.ended_ms) is not true);
  if v_redriven = '{}' then
    return;
  end if;

  -- What was asked of its last life does not concern this one. What its parent asked says so even if it was heard.
  update "pawl".inbox i
     set taken_seq = 0
   where i.shard = p_shard and i.run_id = any (v_redriven) and i.taken_seq is null and i.topic in ('cancel', 'pause', 'resume');
  with asked as materialized (
    select i.place
      from (select r.id, r.parent_id from "pawl".run r where r.shard = p_shard and r.id = any (v_redriven) offset 0) r
     cross join lateral (
       select i.ctid as place
         from "pawl".inbox i
        where i.shard = p_shard and i.run_id = r.id and i.id = "pawl".cancel_from_parent_v1(r.id, r.parent_id)
          for update) i
  )
  update "pawl".inbox i set taken_seq = 0 from asked a where i.ctid = a.place;
  update "pawl".run r
     set start_at = null, expires_at = null,
         deadline_at = case when r.deadline_at > v_now then r.deadline_at end
   where r.shard = p_shard and r.id = any (v_redriven);
  select array_agg((e.run_id, e.epoch, 0, e.attempt + (e.epoch > 0)::integer, 0, 0,
                    ((e.error ->> 'code' = 'WORKER_CRASHED') is true)::integer * 2, true)::"pawl".room)
    into v_rooms
    from "pawl".endings e
   where e.shard = p_shard and e.run_id = any (v_redriven);
  delete from "pawl".stopped s where s.shard = p_shard and s.run_id = any (v_redriven);

  if p_fresh then
    perform "pawl".forget_children_v1(p_shard, v_now, v_redriven);
    perform "pawl".reopen_streams_v1(p_shard, v_redriven);
  else
    perform "pawl".hear_children_v1(p_shard, v_now, v_redriven);
  end if;
  with life as materialized (
    select r.run_id, r.epoch, "pawl".newest_seq_v1(p_shard, r.run_id) + 1 as seq, r.attempt, r.suspicion
      from unnest(v_rooms) r
  ), fact as (
    insert into "pawl".event (shard, run_id, seq, at, kind, data)
    select p_shard, l.run_id, l.seq, v_now, 'redriven', case when p_fresh then '{"from":"start"}'::json end from life l
  )
  select array_agg((l.run_id, l.epoch, l.seq, l.attempt, 0, 0, l.suspicion, true)::"pawl".room) into v_rooms from life l;
  perform "pawl".put_ready_v1(p_shard, v_now, v_rooms);
end
$function$;

create function pawl.register_worker_v1(p_worker uuid, p_lease_ms integer, p_host text, p_pid integer, p_queues text[], p_concurrency integer, p_workflows text[], p_settings json)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
begin
  insert into "pawl".worker (id, started_at, heard_at, lease_ms, host, pid, queues, concurrency, workflows, settings)
  values (p_worker, clock_timestamp(), clock_timestamp(), p_lease_ms, p_host, p_pid, p_queues, p_concurrency, p_workflows, p_settings)
  on conflict do nothing;
  if found then
    perform "pawl".retry_blocked_v1(p_queues, p_workflows);
  end if;
end
$function$;

create function pawl.release_runs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_ready_ms double precision[])
 RETURNS TABLE(run_id uuid)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_held uuid[] := ("pawl".lock_leases_v1(p_shard, p_worker, p_runs, p_epochs)).runs;
begin
  perform "pawl".return_leases_v1(p_shard, clock_timestamp(), v_held);
  if p_ready_ms is not null then
    with unbegun as materialized (
      select y.place, to_timestamp(i.ready_ms / 1000.0) as ready_at, r.expires_at
        from unnest(p_runs, p_ready_ms) i (run_id, ready_ms)
       cross join lateral (
         select y.ctid as place
           from "pawl".ready y
          where y.shard = p_shard and y.run_id = i.run_id
            for update) y
       cross join lateral (
         select least(r.expires_at, r.deadline_at) as expires_at
           from "pawl".run r
          where r.shard = p_shard and r.id = i.run_id
         offset 0) r
       where i.ready_ms is not null and i.run_id = any (v_held)
    )
    update "pawl".ready y
       set ready_at = u.ready_at, expires_at = case when y.epoch = 1 then u.expires_at end
      from unbegun u
     where y.ctid = u.place;
  end if;
  return query select l from unnest("pawl".lost_runs_v1(p_runs, v_held)) l;
end
$function$;

create function pawl.reopen_streams_v1(p_shard smallint, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
declare
  v_run uuid;
  v_last "pawl".stream;
begin
  foreach v_run in array p_runs loop
    select s.* into v_last
      from "pawl".stream s
     where s.run_id = v_run and (s.shard = p_shard) is true
     order by s.run_id desc, s.name desc, s.position desc
     limit 1;
    while found loop
      if v_last.is_closing then
        delete from "pawl".stream s
         where s.run_id = v_run and s.name = v_last.name and s.position = v_last.position and s.shard = p_shard;
      end if;
      select s.* into v_last
        from "pawl".stream s
       where s.run_id = v_run and s.name < v_last.name and (s.shard = p_shard) is true
       order by s.run_id desc, s.name desc, s.position desc
       limit 1;
    end loop;
  end loop;
end
$function$;

create function pawl.reschedule_run_v1(p_shard smallint, p_run uuid, p_priority integer, p_timed boolean, p_start_ms double precision, p_data text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_run "pawl".run;
  v_now timestamptz;
  v_start timestamptz;
  v_parked "pawl".parked;
  v_ready "pawl".ready;
  v_room "pawl".room;
begin
  select r.* into v_run from "pawl".run r where r.shard = p_shard and r.id = p_run for no key update;
  if not found then
    return 'missing';
  end if;
  if "pawl".end_status_v1(p_shard, p_run) is not null then
    return 'ended';
  end if;
  perform "pawl".unpack_runs_v1(p_shard, array[p_run]);
  v_now := clock_timestamp();
  v_start := coalesce(to_timestamp(p_start_ms / 1000.0), v_now);

  select p.* into v_parked from "pawl".parked p where p.shard = p_shard and p.run_id = p_run for update;
  if found then
    if p_timed and v_parked.epoch > 0 and v_parked.reason <> 'retry' then
      return 'begun';
    end if;
    delete from "pawl".parked p where p.shard = p_shard and p.run_id = p_run;
    v_room := (p_run, v_parked.epoch, v_parked.last_seq + 1, v_parked.attempt, v_parked.failures, v_parked.crashes,
               v_parked.suspicion, false);
  else
    select y.* into v_ready from "pawl".ready y where y.shard = p_shard and y.run_id = p_run for update;
    if not found or (p_timed and v_ready.epoch > 0) then
      return 'begun';
    end if;
    delete from "pawl".ready y where y.shard = p_shard and y.run_id = p_run;
    v_room := (p_run, v_ready.epoch, v_ready.last_seq + 1, v_ready.attempt, v_ready.failures, v_ready.crashes,
               v_ready.suspicion, v_ready.told);
  end if;

  insert into "pawl".event (shard, run_id, seq, at, kind, data)
  values (p_shard, p_run, v_room.last_seq, v_now, 'rescheduled', p_data::json);
  update "pawl".run r
     set priority = coalesce(p_priority, r.priority),
         start_at = case when p_timed and v_room.epoch = 0 then v_start else r.start_at end
   where r.shard = p_shard and r.id = p_run;

  if v_ready.run_id is null and v_parked.reason not in ('delayed', 'retry') then
    insert into "pawl".parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion,
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
    insert into "pawl".parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion,
                                 reason, wants)
    values (p_shard, p_run, v_now, v_start, v_room.epoch, v_room.last_seq, v_room.attempt, v_room.failures, v_room.crashes,
            v_room.suspicion, coalesce(v_parked.reason, 'delayed'), coalesce(v_parked.wants, '{cancel,pause}'));
    return 'rescheduled';
  end if;
  v_room.told := v_room.told or exists (select 1 from "pawl".inbox i
                                         where i.shard = p_shard and i.run_id = p_run and i.taken_seq is null);
  perform "pawl".put_ready_v1(p_shard, coalesce(v_ready.ready_at, v_now), array[v_room]);
  return 'rescheduled';
end
$function$;

create function pawl.resume_runs_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_resumed uuid[];
  v_rooms "pawl".room[];
begin
  with resumed as materialized (
    select distinct on (i.run_id) i.run_id, i.sent_at, i.id
      from "pawl".inbox i
     where i.shard = p_shard and i.run_id = any (p_runs) and i.taken_seq is null and i.topic = 'resume'
       and (exists (select 1 from "pawl".parked p where p.shard = p_shard and p.run_id = i.run_id offset 0)
            or exists (select 1 from "pawl".ready y where y.shard = p_shard and y.run_id = i.run_id offset 0))
     order by i.run_id, i.sent_at desc, i.id desc
  ), void as materialized (
    select i.place
      from resumed r
     cross join lateral (
       select i.ctid as place
         from "pawl".inbox i
        where i.shard = p_shard and i.run_id = r.run_id and i.taken_seq is null and i.topic in ('pause', 'resume')
          and (i.sent_at, i.id) <= (r.sent_at, r.id)
          for update) i
  ), taken as (
    update "pawl".inbox i set taken_seq = 0 from void v where i.ctid = v.place
  )
  select array_agg(r.run_id) into v_resumed from resumed r;

  with delayed as materialized (
    select p.place, r.due_at
      from unnest(v_resumed) w (run_id)
     cross join lateral (
       select p.ctid as place
         from "pawl".parked p
        where p.shard = p_shard and p.run_id = w.run_id and p.reason = 'paused' and p.epoch = 0
          for update) p
     cross join lateral (
       select r.start_at, least(r.start_at, r.expires_at, r.deadline_at) as due_at
         from "pawl".run r
        where r.shard = p_shard and r.id = w.run_id
       offset 0) r
     where r.start_at > p_now
  ), still as (
    update "pawl".parked p
       set reason = 'delayed', due_at = d.due_at, wants = '{cancel,pause}', last_seq = p.last_seq + 1, parked_at = p_now
      from delayed d
     where p.ctid = d.place
    returning p.run_id, p.last_seq
  )
  insert into "pawl".event (shard, run_id, seq, at, kind)
  select p_shard, s.run_id, s.last_seq, p_now, 'resumed' from still s;

  with woken as (
    delete from "pawl".parked p
     where p.shard = p_shard and p.run_id = any (v_resumed) and p.reason = 'paused'
    returning p.run_id, p.epoch, p.last_seq + 1 as last_seq, p.attempt, p.failures, p.crashes, p.suspicion
  ), fact as (
    insert into "pawl".event (shard, run_id, seq, at, kind)
    select p_shard, w.run_id, w.last_seq, p_now, 'resumed' from woken w
  )
  select array_agg((w.run_id, w.epoch, w.last_seq, w.attempt, w.failures, w.crashes, w.suspicion, true)::"pawl".room)
    into v_rooms from woken w;
  perform "pawl".put_ready_v1(p_shard, p_now, v_rooms);
end
$function$;

create function pawl.retire_worker_v1(p_shard smallint, p_worker uuid)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '1s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off'
AS $function$
declare
  v_now timestamptz;
  v_packs uuid[];
  v_runs uuid[];
begin
  perform 1 from "pawl".worker w where w.id = p_worker for update;
  v_now := clock_timestamp();
  v_packs := array(select k.id from "pawl".pack k
                    where k.shard = p_shard and k.worker_id = p_worker
                    order by k.claimed_at);
  if v_packs <> '{}' then
    perform 1 from (select 1 from "pawl".pack k
                     where k.shard = p_shard and k.id = any (v_packs)
                     order by k.id for update) k;
    perform "pawl".unpack_v1(p_shard, v_packs);
  end if;
  v_runs := array(select l.run_id from "pawl".lease l
                   where l.shard = p_shard and l.worker_id = p_worker
                   order by l.claimed_at);
  v_runs := array(select l.run_id from "pawl".lease l
                   where l.shard = p_shard and l.run_id = any (v_runs) and (l.worker_id = p_worker) is true
                   order by l.run_id for update);
  perform "pawl".return_leases_v1(p_shard, v_now, v_runs);
  update "pawl".worker w set ended_at = coalesce(w.ended_at, v_now), swept_at = v_now where w.id = p_worker;
end
$function$;

create function pawl.retry_blocked_v1(p_queues text[], p_workflows text[])
 RETURNS void
 LANGUAGE plpgsql
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
declare
  v_now timestamptz := clock_timestamp();
begin
  with blocked as materialized (
    select p.run_id, p.shard
      from "pawl".parked p
     where p.reason = 'blocked' and p.reason <> 'waiting'
     order by p.reason, p.run_id
     limit 1000
  ), fit as materialized (
    select m.place
      from blocked b
     cross join lateral (
       select r.workflow, r.version, r.queue from "pawl".run r where r.shard = b.shard and r.id = b.run_id offset 0) r
     cross join lateral (
       select p.ctid as place
         from "pawl".parked p
        where p.shard = b.shard and p.run_id = b.run_id and p.reason = 'blocked' and p.due_at > v_now
          and r.workflow || '@' || r.version = any (p_workflows) and r.queue = any (p_queues)
          for update skip locked) m
  )
  update "pawl".parked p set due_at = v_now from fit f where p.ctid = f.place;
end
$function$;

create function pawl.return_leases_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_rooms "pawl".room[];
begin
  with gone as (
    delete from "pawl".lease l
     where l.shard = p_shard and l.run_id = any (p_runs)
    returning l.run_id, l.epoch, l.attempt, l.failures, l.crashes, l.suspicion
  )
  select array_agg((g.run_id, g.epoch, "pawl".newest_seq_v1(p_shard, g.run_id), g.attempt, g.failures, g.crashes,
                    g.suspicion, true)::"pawl".room)
    into v_rooms from gone g;
  perform "pawl".put_ready_v1(p_shard, p_now, v_rooms);
end
$function$;

create function pawl.server_v1()
 RETURNS double precision
 LANGUAGE plpgsql
 STABLE
AS $function$
begin
  return extract(epoch from pg_postmaster_start_time()) * 1000;
end
$function$;

create function pawl.shard_of_v1(p_id uuid)
 RETURNS smallint
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  return (('x' || substr(p_id::text, 20, 4))::bit(16)::integer >> 4) & 1023;
end
$function$;

create function pawl.signal(run uuid, name text, payload json DEFAULT NULL::json, idempotency_key text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
AS $function$
begin
  perform "pawl".check_name_v1('signal', signal.name);
  if signal.idempotency_key is not null then
    perform "pawl".check_name_v1('idempotency key', signal.idempotency_key);
  end if;
  perform "pawl".check_payload_v1('The signal "' || signal.name || '"', signal.payload);
  return "pawl".tell_in_transaction_v1("pawl".shard_of_v1(signal.run), "pawl".new_id_v1("pawl".shard_of_v1(signal.run)),
    signal.run, 'signal:' || signal.name, signal.payload::text, null, signal.idempotency_key);
end
$function$;

create function pawl.signal_or_start(workflow text, key text, signal text, payload json DEFAULT NULL::json, input json DEFAULT NULL::json, idempotency_key text DEFAULT NULL::text, version integer DEFAULT 1, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, start_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline_at timestamp with time zone DEFAULT NULL::timestamp with time zone, tags text[] DEFAULT NULL::text[])
 RETURNS uuid
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_shard constant smallint := 0;
  v_id uuid := "pawl".new_id_v1(v_shard);
  v_answer json;
begin
  perform "pawl".check_start_v1(signal_or_start.workflow, signal_or_start.input, signal_or_start.version,
                                  signal_or_start.key, signal_or_start.queue, signal_or_start.tags);
  perform "pawl".check_name_v1('key', signal_or_start.key);
  perform "pawl".check_name_v1('signal', signal_or_start.signal);
  if signal_or_start.idempotency_key is not null then
    perform "pawl".check_name_v1('idempotency key', signal_or_start.idempotency_key);
  end if;
  perform "pawl".check_payload_v1('The signal "' || signal_or_start.signal || '"', signal_or_start.payload);

  v_answer := "pawl".signal_or_start_in_transaction_v1(v_shard,
    "pawl".new_run_v1(v_id, signal_or_start.workflow, signal_or_start.input, signal_or_start.version, signal_or_start.key,
                        signal_or_start.queue, signal_or_start.priority, signal_or_start.start_at,
                        signal_or_start.expires_at, signal_or_start.deadline_at, signal_or_start.tags),
    null, "pawl".new_id_v1(v_shard), 'signal:' || signal_or_start.signal, signal_or_start.payload::text, null,
    signal_or_start.idempotency_key);
  if v_answer ->> 'outcome' = 'conflict' then
    raise exception 'The key "%" belongs to run %, which has another workflow.', signal_or_start.key, v_answer ->> 'owner_id'
      using errcode = 'PW002', detail = 'KEY_CONFLICT';
  end if;
  if v_answer ->> 'told' = 'ended' then
    raise exception 'The key "%" belongs to run %, which has ended and takes no more messages.',
        signal_or_start.key, v_answer ->> 'owner_id'
      using errcode = 'PW006', detail = 'RUN_ENDED';
  end if;
  return (v_answer ->> 'owner_id')::uuid;
end
$function$;

create function pawl.signal_or_start_in_transaction_v1(p_shard smallint, p_run json, p_bound_to uuid, p_id uuid, p_topic text, p_data text, p_notes text, p_key text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_outcome text;
  v_owner uuid;
  v_told text;
begin
  select f.outcome, f.owner_id into v_outcome, v_owner from "pawl".find_or_start_v1(p_shard, p_run, p_bound_to) f;
  if v_outcome in ('created', 'found') then
    v_told := "pawl".tell_in_transaction_v1(p_shard, p_id, v_owner, p_topic, p_data, p_notes, p_key);
  end if;
  return json_build_object('outcome', v_outcome, 'owner_id', v_owner, 'told', v_told);
end
$function$;

create function pawl.signal_or_start_v1(p_shard smallint, p_run json, p_bound_to uuid, p_id uuid, p_topic text, p_data text, p_notes text, p_key text)
 RETURNS TABLE(outcome text, owner_id uuid, told text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_outcome text;
  v_owner uuid;
  v_told text;
begin
  loop
    v_told := null;
    select f.outcome, f.owner_id into v_outcome, v_owner from "pawl".find_or_start_v1(p_shard, p_run, p_bound_to) f;
    if v_outcome in ('created', 'found') then
      select t.outcome into v_told
        from "pawl".tell_runs_v1(p_shard, array[p_id], array[v_owner], array[p_topic], array[p_data], array[p_notes], array[p_key]) t;
    end if;
    -- While we waited for it, it may have passed its key on to the run that it went on as.
    exit when v_told is distinct from 'ended'
           or exists (select 1 from "pawl".key k where k.shard = p_shard and k.key = p_run ->> 'key' and (k.run_id = v_owner) is true);
  end loop;
  return query select v_outcome, v_owner, v_told;
end
$function$;

create function pawl.start(workflow text, input json DEFAULT NULL::json, version integer DEFAULT 1, key text DEFAULT NULL::text, queue text DEFAULT 'default'::text, priority integer DEFAULT 0, start_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, deadline_at timestamp with time zone DEFAULT NULL::timestamp with time zone, tags text[] DEFAULT NULL::text[], on_conflict text DEFAULT 'return'::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_shard constant smallint := 0;
  v_id uuid := "pawl".new_id_v1(v_shard);
  v_outcome text;
  v_owner uuid;
begin
  perform "pawl".check_start_v1(start.workflow, start.input, start.version, start.key, start.queue, start.tags);
  if start.on_conflict not in ('return', 'reject') then
    raise exception 'The option "on_conflict" of start must be ''return'' or ''reject''.' using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;
  if start.on_conflict = 'reject' and start.key is null then
    raise exception 'The option "on_conflict" of start needs a key.' using errcode = 'PW005', detail = 'INVALID_OPTION';
  end if;

  select c.outcome, c.owner_id into v_outcome, v_owner
    from "pawl".start_runs_v1(v_shard, json_build_array("pawl".new_run_v1(v_id, start.workflow, start.input, start.version,
           start.key, start.queue, start.priority, start.start_at, start.expires_at, start.deadline_at, start.tags)),
           start.key is not null, false, null, null) c;

  if v_owner is null or v_owner = v_id then
    return v_id;
  end if;
  if v_outcome = 'existing' and start.on_conflict is distinct from 'reject' then
    return v_owner;
  end if;
  raise exception 'The key "%" belongs to run %.', start.key,
      v_owner || case v_outcome when 'existing' then '' else ', which has another workflow, version or input' end
    using errcode = 'PW002', detail = 'KEY_CONFLICT';
end
$function$;

create function pawl.start_runs_v1(p_shard smallint, p_runs json, p_keyed boolean, p_whole boolean, p_holder uuid, p_crash_limit smallint)
 RETURNS TABLE(run_id uuid, outcome text, owner_id uuid)
 LANGUAGE plpgsql
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_answers json;
  v_skip uuid[];
begin
  if not p_keyed then
    perform "pawl".put_runs_v1(p_shard, v_now, p_runs, null, p_holder, p_crash_limit);
    return;
  end if;

  insert into "pawl".key (shard, key, run_id, workflow, version, input_hash)
  select p_shard, n.key, n.id, n.workflow, n.version, "pawl".input_hash_v1(n.input, n.notes)
    from rows from (json_to_recordset(p_runs) as (id uuid, workflow text, version integer, input text, notes text, key text))
         with ordinality as n (id, workflow, version, input, notes, key, place)
   where n.key is not null
   order by n.key, n.place
  on conflict (shard, key) do nothing;

  -- A repeated call is one though its run has passed its key on to the one that it went on as.
  select json_agg(json_build_object('id', n.id, 'owner', k.run_id, 'outcome',
           case when k.run_id = n.id then 'created'
                when exists (select 1 from "pawl".run r
                              where r.shard = p_shard and r.id = n.id and (r.key = n.key) is true offset 0) then 'created'
                when n.must_be_new is not true and k.workflow = n.workflow and k.version = n.version
                     and k.input_hash is not distinct from "pawl".input_hash_v1(n.input, n.notes) then 'existing'
                else 'conflict' end)),
         array_agg(n.id) filter (where k.run_id <> n.id)
    into v_answers, v_skip
    from json_to_recordset(p_runs) as n (id uuid, workflow text, version integer, input text, notes text, key text,
                                         must_be_new boolean)
   cross join lateral (
     select k.run_id, k.workflow, k.version, k.input_hash
       from "pawl".key k
      where k.shard = p_shard and k.key = n.key
     offset 0) k;

  if p_whole and exists (select 1 from json_to_recordset(v_answers) a (outcome text) where a.outcome = 'conflict') then
    v_skip := array(select n.id from json_to_recordset(p_runs) as n (id uuid));
    delete from "pawl".key k
     where k.shard = p_shard and k.key = any (array(select n.key from json_to_recordset(p_runs) as n (key text)))
       and (k.run_id = any (v_skip)) is true
       and not exists (select 1 from "pawl".run r where r.shard = p_shard and r.id = k.run_id offset 0);
    return query
    select n.id, case when a.outcome = 'conflict' then 'conflict' else 'withheld' end,
           case when a.outcome <> 'created' then a.owner else n.id end
      from json_to_recordset(p_runs) as n (id uuid)
      left join json_to_recordset(v_answers) a (id uuid, owner uuid, outcome text) on a.id = n.id;
    return;
  end if;

  return query
  select a.id, a.outcome, case when a.outcome = 'created' then a.id else a.owner end
    from json_to_recordset(v_answers) a (id uuid, owner uuid, outcome text);
  perform "pawl".put_runs_v1(p_shard, v_now, p_runs, v_skip, p_holder, p_crash_limit);
end
$function$;

create function pawl.stopped_children_v1(p_shard smallint, p_runs uuid[], p_statuses text[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
begin
  if (p_statuses && '{cancelled,timed_out,failed}') is not true then
    return null;
  end if;
  return array(
    select c.id
      from unnest(p_runs, p_statuses) i (id, status)
     cross join lateral (
       select c.id
         from "pawl".run c
        where c.shard = p_shard and c.parent_id = i.id and c.detached is not true
       offset 0) c
     where "pawl".end_status_v1(p_shard, c.id) is null and i.status in ('cancelled', 'timed_out', 'failed'));
end
$function$;

create function pawl.sweep_v1(p_shard smallint, p_limit integer, p_after uuid)
 RETURNS TABLE(expired_workers integer, recovered integer, failed integer, expired_runs integer, rescued integer, after_id uuid, more boolean)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
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
  if exists (select 1 from "pawl".worker w
              where w.swept_at is null
                and (w.ended_at is not null or w.heard_at <= v_now - w.lease_ms * interval '1 millisecond')) then
    v_dead := array(select w.id from "pawl".worker w
                     where w.swept_at is null
                       and (w.ended_at is not null or w.heard_at <= v_now - w.lease_ms * interval '1 millisecond')
                     order by w.id
                       for update skip locked);
    v_packs := array(select k.id
                       from unnest(v_dead) d (id)
                      cross join lateral (
                        select k.id
                          from "pawl".pack k
                         where k.shard = p_shard and k.worker_id = d.id
                         order by k.claimed_at
                           for update skip locked) k);
    if v_packs <> '{}' then
      perform "pawl".unpack_v1(p_shard, v_packs);
    end if;
    update "pawl".worker w
       set ended_at = v_now,
           held_at_end = (select count(*)
                            from (select 1 from "pawl".lease l
                                   where l.shard = p_shard and l.worker_id = w.id and l.began_at is not null
                                   order by l.claimed_at
                                  offset 0) l)
                         + (select coalesce(sum(cardinality(k.run_ids)), 0)
                              from (select k.run_ids from "pawl".pack k
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
              from (select w.id, coalesce(w.held_at_end, 0) as held_at_end from "pawl".worker w where w.id = any (v_dead)) d
             cross join lateral (
               select l.run_id, l.began_at, l.crashes, l.crash_limit
                 from "pawl".lease l
                where l.shard = p_shard and l.worker_id = d.id
                order by l.claimed_at
               offset 0) l
             order by is_spent, l.run_id
             limit p_limit) c;
    v_locked := "pawl".lock_free_runs_v1(p_shard, coalesce(v_candidates, '{}'), false)
             || "pawl".lock_free_runs_v1(p_shard, coalesce(v_spent, '{}'), true);
    select r.recovered, r.failed into v_recovered, v_failed from "pawl".recover_leases_v1(p_shard, v_now, v_dead, v_locked) r;
    v_more := v_recovered + v_failed = p_limit;

    update "pawl".worker w
       set swept_at = v_now
     where w.id = any (v_dead)
       and not exists (select 1 from "pawl".lease l
                        where l.shard = p_shard and l.worker_id = w.id
                        order by l.claimed_at
                       offset 0)
       and not exists (select 1 from "pawl".pack k
                        where k.shard = p_shard and k.worker_id = w.id
                        order by k.claimed_at
                       offset 0);
  end if;

  v_candidates := array(select y.run_id from "pawl".ready y
                         where y.shard = p_shard and y.expires_at <= v_now
                         order by y.expires_at limit p_limit);
  if v_candidates <> '{}' then
    v_expired := "pawl".expire_runs_v1(p_shard, v_now, "pawl".lock_free_runs_v1(p_shard, v_candidates, true));
    v_more := v_more or v_expired = p_limit;
  end if;

  -- Overlooked: parked runs that are told, and cancels, pauses and resumes that nobody has passed on.
  select array_agg(distinct m.run_id) filter (where m.is_overlooked), count(*), max(m.place)
    into v_told, v_looked, v_after
    from (select u.run_id, u.run_id::text as place,
                 exists (select 1 from "pawl".parked p
                          where p.shard = p_shard and p.run_id = u.run_id
                            and exists (select 1 from "pawl".inbox i
                                         where i.shard = p_shard and i.run_id = u.run_id and i.taken_seq is null
                                           and i.topic = any (p.wants)
                                        offset 0)
                         offset 0)
                 or u.topic in ('cancel', 'pause', 'resume')
                    and (exists (select 1 from "pawl".ready y
                                  where y.shard = p_shard and y.run_id = u.run_id and not y.told
                                 offset 0)
                         or "pawl".is_packed_v1(p_shard, u.run_id)
                         or exists (select 1 from "pawl".lease l
                                     where l.shard = p_shard and l.run_id = u.run_id and not l.told
                                    offset 0))
                 or u.topic <> 'child'
                    and exists (select 1 from "pawl".run r
                                 where r.shard = p_shard and r.id = u.run_id and r.continued_as is not null
                                offset 0) as is_overlooked
            from (select i.run_id, i.topic
                    from "pawl".inbox i
                   where i.shard = p_shard and i.taken_seq is null
                     and i.run_id > coalesce(p_after, '00000000-0000-0000-0000-000000000000'::uuid)
                   order by i.shard, i.run_id
                   limit 1000) u) m;
  if v_told is not null then
    v_told := "pawl".lock_free_runs_v1(p_shard, v_told || "pawl".chain_ends_v1(p_shard, v_told), true);
    perform "pawl".forward_messages_v1(p_shard, v_told, v_told);
    select count(*) into v_rescued
      from "pawl".parked p
     where p.shard = p_shard and p.run_id = any (v_told)
       and exists (select 1 from "pawl".inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null and i.topic = any (p.wants)
                   offset 0);
    perform "pawl".wake_runs_v1(p_shard, v_now, v_told);
  end if;

  return query select v_ended, v_recovered, v_failed, v_expired, v_rescued,
                      case when v_looked = 1000 then v_after end, v_more;
end
$function$;

create function pawl.take_leases_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers double precision[], p_taken uuid[], OUT runs uuid[], OUT attempts integer[])
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
  v_held uuid[];
begin
  if cardinality(p_taken) = cardinality(p_runs) then
    runs := p_taken;
    attempts := array_fill(1, array[cardinality(p_taken)]);
    return;
  end if;
  -- Most have the first epoch, and so the same.
  if p_epochs[1] = all (p_epochs) and p_servers = array["pawl".server_v1()] then
    with gone as (
      delete from "pawl".lease l
       where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = p_worker) is true and l.epoch = p_epochs[1]
      returning l.run_id, l.attempt
    )
    select array_agg(g.run_id), array_agg(g.attempt) into runs, attempts from gone g;
  end if;
  -- What is missing may be in packs.
  if runs is null or cardinality(runs) + coalesce(cardinality(p_taken), 0) < cardinality(p_runs) then
    v_held := ("pawl".lock_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers)).runs;
    with gone as (
      delete from "pawl".lease l where l.shard = p_shard and l.run_id = any (v_held) returning l.run_id, l.attempt
    )
    select runs || array_agg(g.run_id), attempts || array_agg(g.attempt) into runs, attempts from gone g;
  end if;
  if p_taken is not null then
    runs := runs || p_taken;
    attempts := attempts || array_fill(1, array[cardinality(p_taken)]);
  end if;
end
$function$;

create function pawl.take_packed_v1(p_shard smallint, p_queue text, p_workflow text, p_version integer, p_after pawl.place, p_before pawl.place, p_limit integer, p_worker uuid, p_now timestamp with time zone, p_began_at timestamp with time zone, p_crash_limit smallint, OUT packs uuid[], OUT cut uuid[], OUT taken integer, OUT has_left boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
  v_left integer := p_limit;
  v_packs uuid[];
  v_whole integer;
  v_cut uuid[];
  v_picked integer;
begin
  packs := '{}';
  cut := '{}';
  taken := 0;
  has_left := false;
  -- As many packs as would do if they were full. Most are: those that an earlier claim has taken from are not.
  while v_left > 0 loop
    with picked as materialized (
      select k.ctid as place, k.run_ids, cardinality(k.run_ids) as size
        from "pawl".pack k
       where k.shard = p_shard and k.queue = p_queue and k.workflow = p_workflow and k.version = p_version and k.worker_id is null
         and (k.priority, k.ready_at, uuid_send(k.id)) > (p_after.priority, p_after.ready_at, uuid_send(p_after.run_id))
         and (k.priority, k.ready_at, uuid_send(k.id)) < (p_before.priority, p_before.ready_at, uuid_send(p_before.run_id))
       order by k.priority, k.ready_at, uuid_send(k.id)
       limit (v_left + 63) / 64
         for update skip locked
    ), summed as materialized (
      select p.place, p.run_ids, p.size, v_left + p.size - (sum(p.size) over (rows unbounded preceding))::integer as room
        from picked p
    ), held as (
      update "pawl".pack k
         set worker_id = p_worker, claimed_at = p_now, began_at = p_began_at, crash_limit = p_crash_limit
        from summed s
       where k.ctid = s.place and s.size <= s.room
      returning k.id, s.size
    ), parted as (
      update "pawl".pack k set run_ids = s.run_ids[s.room + 1 :], inputs = null
        from summed s
       where k.ctid = s.place and s.size > s.room and p_limit - s.room < 128
      returning s.run_ids[: s.room] as taken
    )
    -- What somebody has cut since this statement began is locked as it is now, but not found to be cut: it is taken by the next one.
    select h.packs, h.size, (select array_agg(u) from parted p cross join unnest(p.taken) u), s.picked, coalesce(s.has_left, false)
      into v_packs, v_whole, v_cut, v_picked, has_left
      from (select array_agg(h.id) as packs, coalesce(sum(h.size), 0) as size from held h) h
     cross join (select count(*) as picked, bool_or(s.size > s.room and p_limit - s.room >= 128) as has_left from summed s) s;
    exit when v_picked = 0;
    packs := packs || v_packs;
    cut := cut || v_cut;
    taken := taken + v_whole + coalesce(cardinality(v_cut), 0);
    v_left := p_limit - taken;
    has_left := has_left and taken >= 128;
    exit when has_left;
  end loop;
end
$function$;

create function pawl.take_packs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_servers double precision[], p_packs uuid[], p_firsts integer[], p_lasts integer[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_held uuid[];
  v_gone uuid[];
  v_places integer[];
begin
  v_held := array(select k.id from "pawl".pack k
                   where k.shard = p_shard and k.id = any (p_packs) and (k.worker_id = p_worker) is true
                   order by k.id for update);
  if p_epochs[1] = 1 and p_epochs[1] = all (p_epochs) and p_servers = array["pawl".server_v1()] then
    with gone as (
      delete from "pawl".pack k
       where k.shard = p_shard and k.id = any (v_held)
         and exists (select 1
                       from unnest(p_packs, p_firsts, p_lasts) i (id, first, last)
                      where i.id = k.id and k.run_ids::uuid[] = p_runs[i.first : i.last])
      returning k.id
    )
    select array_agg(g.id) into v_gone from gone g;
    if v_gone @> p_packs and (select sum(i.last - i.first + 1) from unnest(p_firsts, p_lasts) i (first, last)) = cardinality(p_runs) then
      return p_runs;
    end if;
  end if;
  if cardinality(v_gone) < cardinality(v_held) or v_gone is null and v_held <> '{}' then
    perform "pawl".unpack_v1(p_shard, array(select h from unnest(v_held) h where (h = any (v_gone)) is not true));
  end if;
  return (select array_agg(r order by i.first, r.place)
            from unnest(p_packs, p_firsts, p_lasts) i (id, first, last)
           cross join unnest(p_runs[i.first : i.last]) with ordinality r (r, place)
           where i.id = any (v_gone));
end
$function$;

create function pawl.tell_in_transaction_v1(p_shard smallint, p_id uuid, p_run uuid, p_topic text, p_data text, p_notes text, p_key text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_run uuid := p_run;
  v_status text;
  v_first uuid;
  v_next uuid;
begin
  select "pawl".end_status_v1(p_shard, r.id), r.first_id, r.continued_as into v_status, v_first, v_next
    from "pawl".run r where r.shard = p_shard and r.id = v_run;
  if not found then
    return 'missing';
  end if;
  if v_next is not null then
    v_first := coalesce(v_first, p_run);
    select r.id, "pawl".end_status_v1(p_shard, r.id) into v_run, v_status
      from "pawl".run r where r.shard = p_shard and r.first_id = v_first and r.continued_as is null;
  end if;
  if v_status is not null then
    return case when exists (select 1 from "pawl".inbox i
                              where i.shard = p_shard and coalesce(i.chain_id, i.run_id) = coalesce(v_first, v_run)
                                and i.idempotency_key = p_key)
                then 'duplicate' else 'ended' end;
  end if;
  insert into "pawl".inbox (shard, run_id, id, chain_id, sent_to, sent_at, topic, idempotency_key, data, notes)
  values (p_shard, v_run, p_id, v_first, nullif(p_run, v_run), clock_timestamp(), p_topic, p_key, p_data::json, p_notes::json)
  on conflict do nothing;
  if not found then
    return 'duplicate';
  end if;
  perform "pawl".hint_runs_v1('s', array[v_run]);
  return 'accepted';
end
$function$;

create function pawl.tell_parents_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS uuid[]
 LANGUAGE plpgsql
AS $function$
declare
  v_parents uuid[];
begin
  with told as (
    insert into "pawl".inbox (shard, run_id, id, sent_at, topic, name, data, notes)
    select p_shard, c.parent_id, c.id, p_now, 'child', c.parent_request,
           "pawl".child_end_v1(c.id, c.first_id, e.status, e.output, e.error),
           "pawl".child_notes_v1(e.output_notes, e.error_notes)
      from (select c.id, c.parent_id, c.first_id, c.parent_request
              from "pawl".run c
             where c.shard = p_shard and c.id = any (p_runs) and c.continued_as is null
            offset 0) c
     cross join lateral (
       select e.status, e.output, e.output_notes, e.error, e.error_notes
         from "pawl".endings e
        where e.shard = p_shard and e.run_id = c.id
       offset 0) e
     where c.parent_id is not null and c.parent_id <> all (p_runs)
       and exists (select 1 from "pawl".run parent
                    where parent.shard = p_shard and parent.id = c.parent_id
                      and "pawl".end_status_v1(p_shard, parent.id) is null
                   offset 0)
    on conflict (shard, run_id, id) do update
       set sent_at = excluded.sent_at, data = excluded.data, notes = excluded.notes
     where inbox.taken_seq is null
    returning run_id
  )
  select array_agg(distinct t.run_id) into v_parents from told t;
  return v_parents;
end
$function$;

create function pawl.tell_runs_v1(p_shard smallint, p_ids uuid[], p_runs uuid[], p_topics text[], p_data text[], p_notes text[], p_keys text[])
 RETURNS TABLE(message_id uuid, outcome text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_locked uuid[] := p_runs || "pawl".parents_of_v1(p_shard, p_runs);
  v_stored uuid[];
  v_wake uuid[];
  v_now timestamptz;
begin
  perform 1 from (select 1 from "pawl".run r
                   where r.shard = p_shard and r.id = any (v_locked)
                   order by r.id for no key update) r;
  v_now := clock_timestamp();

  with stored as (
    insert into "pawl".inbox (shard, run_id, id, chain_id, sent_at, topic, idempotency_key, data, notes)
    select p_shard, m.run_id, m.id, r.first_id, clock_timestamp(), m.topic, m.key, m.data::json, m.notes::json
      from unnest(p_ids, p_runs, p_topics, p_data, p_notes, p_keys) with ordinality
           m (id, run_id, topic, data, notes, key, place)
     cross join lateral (
       select r.first_id
         from "pawl".run r
        where r.shard = p_shard and r.id = m.run_id and "pawl".end_status_v1(p_shard, r.id) is null
       offset 0) r
     order by m.place
    on conflict do nothing
    returning id
  )
  select array_agg(s.id) into v_stored from stored s;

  -- What was being completed when it was looked at has ended once its lease can be had, and has not seen the message.
  if v_stored is not null then
    perform "pawl".unpack_runs_v1(p_shard, p_runs);
    perform 1 from (select 1 from "pawl".lease l
                     where l.shard = p_shard and l.run_id = any (p_runs)
                     order by l.run_id for update) l;
    with void as materialized (
      select i.place
        from unnest(p_runs, p_ids) m (run_id, id)
       cross join lateral (
         select i.ctid as place
           from "pawl".inbox i
          where i.shard = p_shard and i.run_id = m.run_id and i.id = m.id
         offset 0) i
       where "pawl".end_status_v1(p_shard, m.run_id) is not null and m.id = any (v_stored)
    ), gone as (
      delete from "pawl".inbox i using void v where i.ctid = v.place returning i.id
    )
    select array(select s from unnest(v_stored) s except select g.id from gone g) into v_stored;
  end if;

  return query
  select m.id,
         case when r.id is null then 'missing'
              when m.id = any (v_stored) then 'accepted'
              when exists (select 1 from "pawl".inbox i
                            where i.shard = p_shard and i.run_id = m.run_id and i.id = m.id offset 0) then 'accepted'
              when exists (select 1 from "pawl".inbox i
                            where i.shard = p_shard and coalesce(i.chain_id, i.run_id) = coalesce(r.first_id, r.id)
                              and i.idempotency_key = m.key offset 0) then 'duplicate'
              else 'ended' end
    from unnest(p_ids, p_runs, p_keys) m (id, run_id, key)
    left join lateral (
      select r.id, r.first_id
        from "pawl".run r
       where r.shard = p_shard and r.id = m.run_id
      offset 0) r on true;

  v_wake := array(select r.id from "pawl".run r
                   where r.shard = p_shard and r.id = any (p_runs) and "pawl".end_status_v1(p_shard, r.id) is null);
  if v_wake <> '{}' then
    perform "pawl".wake_runs_v1(p_shard, v_now, v_wake);
  end if;
end
$function$;

create function pawl.terminate_run_v1(p_shard smallint, p_run uuid, p_data text, p_notes text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_locked uuid[] := p_run || "pawl".parents_of_v1(p_shard, array[p_run])
                  || "pawl".stopped_children_v1(p_shard, array[p_run], '{cancelled}');
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
  perform 1 from (select 1 from "pawl".run r
                   where r.shard = p_shard and r.id = any (v_locked)
                   order by r.id for no key update) r;
  v_now := clock_timestamp();
  select "pawl".end_status_v1(p_shard, r.id) into v_status from "pawl".run r where r.shard = p_shard and r.id = p_run;
  if not found then
    return 'missing';
  end if;
  if v_status is not null then
    return 'ended';
  end if;
  -- All leases that are needed, together, and packs before them: a holder of several locks them so, too.
  perform "pawl".unpack_runs_v1(p_shard, array[p_run]);
  v_leased := array(select l.run_id from "pawl".lease l
                     where l.shard = p_shard and l.run_id = any (v_locked)
                     order by l.run_id for update);
  delete from "pawl".parked p where p.shard = p_shard and p.run_id = p_run returning p.epoch, p.attempt into v_epoch, v_attempt;
  for i in 1 .. 3 loop
    exit when v_epoch is not null;
    delete from "pawl".ready y where y.shard = p_shard and y.run_id = p_run returning y.epoch, y.attempt into v_epoch, v_attempt;
    exit when v_epoch is not null;
    delete from "pawl".lease l where l.shard = p_shard and l.run_id = p_run
    returning l.epoch, l.attempt, l.began_at, l.worker_id into v_epoch, v_attempt, v_began_at, v_worker;
  end loop;
  if v_epoch is null or v_worker is not null and p_run <> all (v_leased) then
    raise exception 'run % is being moved', p_run using errcode = 'serialization_failure';
  end if;

  -- Its holder may have added some before we had the lease.
  v_children := "pawl".stopped_children_v1(p_shard, array[p_run], '{cancelled}');
  if not v_children <@ v_locked then
    raise exception 'children were added meanwhile' using errcode = 'serialization_failure';
  end if;

  v_seq := "pawl".newest_seq_v1(p_shard, p_run);
  insert into "pawl".event (shard, run_id, seq, at, kind, attempt, began_at, worker_id, data, notes)
  values (p_shard, p_run, v_seq + 1, v_now, 'cancel_requested', null, null, null, p_data::json, p_notes::json),
         (p_shard, p_run, v_seq + 2, v_now, 'cancelled', case when v_began_at is not null then v_attempt end, v_began_at,
          case when v_began_at is not null then v_worker end, null, null);
  v_wake := "pawl".finish_runs_v1(p_shard, v_now, array[p_run], "pawl".parents_of_v1(p_shard, array[p_run]), '{cancelled}',
                                    array[v_epoch], array[v_attempt], array["pawl".cancel_error_v1(p_data::json)], null)
         || "pawl".cancel_children_v1(p_shard, v_now, v_children, array[p_run]);
  perform "pawl".wake_runs_v1(p_shard, v_now, v_wake);
  if v_worker is not null then
    perform "pawl".hint_runs_v1('t', array[p_run]);
  end if;
  return 'terminated';
end
$function$;

create function pawl.unpack_held_v1(p_shard smallint, p_worker uuid, p_runs uuid[])
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  v_packs uuid[] := "pawl".packs_of_v1(p_shard, p_runs, p_worker);
begin
  if v_packs = '{}' then
    return false;
  end if;
  perform 1 from (select 1 from "pawl".pack k
                   where k.shard = p_shard and k.id = any (v_packs)
                   order by k.id for update) k;
  perform "pawl".unpack_v1(p_shard, v_packs);
  return true;
end
$function$;

create function pawl.unpack_runs_v1(p_shard smallint, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_packs uuid[] := "pawl".packs_of_v1(p_shard, p_runs, null);
begin
  if v_packs = '{}' then
    return;
  end if;
  perform 1 from (select 1 from "pawl".pack k
                   where k.shard = p_shard and k.id = any (v_packs)
                   order by k.id for update) k;
  perform "pawl".unpack_v1(p_shard, v_packs);
end
$function$;

create function pawl.unpack_v1(p_shard smallint, p_packs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  with gone as (
    delete from "pawl".pack k
     where k.shard = p_shard and k.id = any (p_packs)
    returning k.ready_at, k.priority, k.version, k.queue, k.workflow, k.run_ids, k.worker_id, k.claimed_at, k.began_at, k.crash_limit
  ), held as (
    insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                crashes, suspicion, crash_limit, told)
    select p_shard, u, g.worker_id, g.claimed_at, g.began_at, 1, 0, 1, 0, 0, 0, g.crash_limit, false
      from gone g
     cross join unnest(g.run_ids) u
     where g.worker_id is not null
  )
  insert into "pawl".ready (shard, run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes,
                              suspicion, told, queue, workflow)
  select p_shard, u, g.ready_at, 0, 0, 1, g.priority, g.version, 0, 0, 0, false, g.queue, g.workflow
    from gone g
   cross join unnest(g.run_ids) u
   where g.worker_id is null;
end
$function$;

create function pawl.wake_due_v1(p_shard smallint, p_limit integer, p_worker uuid, p_lease_ms integer, p_most integer, p_spares_ms integer, p_queues text[], p_workflows text[], p_versions integer[], p_crash_limits smallint[], p_most_facts integer, p_most_bytes integer)
 RETURNS TABLE(run_id uuid, lane integer, ready_ms double precision, input text, notes text, epoch integer, last_seq integer, told boolean, created_ms double precision, more text, fired text, history text, woken integer, has_more boolean, renewed boolean, next_due_ms double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET jit TO 'off'
AS $function$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
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
  v_rooms "pawl".room[];
begin
  select p.due_at into v_next from "pawl".parked p
   where p.shard = p_shard and p.due_at is not null
   order by p.due_at limit 1;

  if v_next <= v_now then
    if p_queues is null then
      v_others := array(select p.run_id from "pawl".parked p
                         where p.shard = p_shard and p.due_at <= v_now
                         order by p.due_at
                         limit p_limit
                           for update skip locked);
      v_has_more := cardinality(v_others) = p_limit;
    else
      select array_agg(l.version || '/' || length(l.workflow) || '/' || l.workflow || l.queue order by l.lane),
             array_agg(l.crash_limit > 0 and not exists (
               select 1 from "pawl".queue q where q.name = l.queue and q.paused_at is not null offset 0) order by l.lane)
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
                  from "pawl".parked p
                 cross join lateral (
                   select array_position(v_lanes, r.version || '/' || length(r.workflow) || '/' || r.workflow || r.queue) as lane,
                          least(r.expires_at, r.deadline_at) as expires_at
                     from "pawl".run r
                    where r.shard = p_shard and r.id = p.run_id
                   offset 0) r
                 where p.shard = p_shard and p.due_at <= v_now
                 order by p.due_at
                 limit v_look) d;
        v_renewed := v_renewed or (v_holdable > 0 and "pawl".keep_worker_v1(p_worker, v_now, p_lease_ms)) is true;
        if v_renewed then
          -- Locked first: a message that was stored meanwhile is seen by the statements that follow.
          select array_agg(h.run_id), array_agg(h.lane) into v_held, v_held_lanes
            from (select t.run_id, u.lane
                    from unnest(v_places, v_own_lanes) u (place, lane)
                   cross join lateral (
                     select p.run_id from "pawl".parked p
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
           select p.run_id from "pawl".parked p
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
        delete from "pawl".parked p
         where p.shard = p_shard and p.run_id = any (v_held)
        returning p.run_id, p.epoch + 1 as epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion, p.due_at, p.fires,
                  exists (select 1 from "pawl".inbox i
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
             from "pawl".run r
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
                      from "pawl".event e
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
        insert into "pawl".event (shard, run_id, seq, at, kind, name)
        select p_shard, w.run_id, w.last_seq, v_now, 'timer_fired', w.fired
          from woken w
         where w.fired is not null
      ), held as (
        insert into "pawl".lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
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
        delete from "pawl".parked p
         where p.shard = p_shard and p.run_id = any (v_others)
        returning (p.run_id, p.epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion,
                   exists (select 1 from "pawl".inbox i
                            where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null offset 0))::"pawl".room as room
      )
      select array_agg(g.room) into v_rooms from gone g;
      perform "pawl".put_ready_v1(p_shard, v_now, v_rooms);
    end if;

    -- What is due and still here is spared, or locked: by who takes it, who tells it something, or who dies before the commit.
    select p.due_at into v_next from "pawl".parked p
     where p.shard = p_shard and p.due_at > case when p_queues is null or v_has_more then '-infinity' else v_now end
     order by p.due_at limit 1;
    if not v_has_more then
      v_next := least(v_next, v_spared_due + v_spares, case when v_missed then v_now + interval '50 milliseconds' end);
    end if;
  end if;

  run_id := null;
  ready_ms := "pawl".server_v1();
  created_ms := floor(extract(epoch from v_now) * 1000);
  woken := coalesce(cardinality(v_held), 0) + coalesce(cardinality(v_others), 0);
  has_more := v_has_more;
  renewed := v_renewed;
  next_due_ms := floor(extract(epoch from v_next) * 1000);
  return next;
end
$function$;

create function pawl.wake_runs_v1(p_shard smallint, p_now timestamp with time zone, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_rooms "pawl".room[];
  v_told uuid[];
  v_unbegun uuid[];
  v_leased uuid[];
begin
  if p_runs is null then
    return;
  end if;

  perform "pawl".unpack_runs_v1(p_shard, p_runs);
  -- Parked rows are locked whether or not they are wanted: one that a due timer is moving is then met in ready.
  perform 1 from (select 1 from "pawl".parked p
                   where p.shard = p_shard and p.run_id = any (p_runs)
                   order by p.run_id for update) p;

  if exists (select 1 from "pawl".inbox i
              where i.shard = p_shard and i.run_id = any (p_runs) and i.taken_seq is null
                and i.topic in ('cancel', 'pause', 'resume')) then
    v_unbegun := array(
      select r from unnest(p_runs) r
       where exists (select 1 from "pawl".inbox i
                      where i.shard = p_shard and i.run_id = r and i.taken_seq is null and i.topic = 'cancel' offset 0)
         and (exists (select 1 from "pawl".parked p where p.shard = p_shard and p.run_id = r and p.epoch = 0 offset 0)
              or exists (select 1 from "pawl".ready y where y.shard = p_shard and y.run_id = r and y.epoch = 0 offset 0)));
    if v_unbegun <> '{}' then
      -- Their parents are told: whoever needs several leases locks them together, in id order.
      v_leased := p_runs || "pawl".parents_of_v1(p_shard, v_unbegun);
      perform 1 from (select 1 from "pawl".lease l
                       where l.shard = p_shard and l.run_id = any (v_leased)
                       order by l.run_id for update) l;
      perform "pawl".cancel_unbegun_v1(p_shard, p_now, v_unbegun);
    end if;
    perform "pawl".resume_runs_v1(p_shard, p_now, p_runs);
    perform "pawl".pause_runs_v1(p_shard, p_now, p_runs);
  end if;

  with woken as (
    delete from "pawl".parked p
     where p.shard = p_shard and p.run_id = any (p_runs)
       and exists (select 1 from "pawl".inbox i
                    where i.shard = p_shard and i.run_id = p.run_id and i.taken_seq is null
                      and i.topic = any (p.wants) offset 0)
    returning (p.run_id, p.epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion, true)::"pawl".room as room
  )
  select array_agg(w.room) into v_rooms from woken w;
  perform "pawl".put_ready_v1(p_shard, p_now, v_rooms);

  update "pawl".ready y
     set told = true
   where y.shard = p_shard and y.run_id = any (p_runs) and not y.told
     and exists (select 1 from "pawl".inbox i
                  where i.shard = p_shard and i.run_id = y.run_id and i.taken_seq is null offset 0);

  perform 1 from (select 1 from "pawl".lease l
                   where l.shard = p_shard and l.run_id = any (p_runs)
                   order by l.run_id for update) l;
  with told as (
    update "pawl".lease l
       set told = true
     where l.shard = p_shard and l.run_id = any (p_runs)
       and exists (select 1 from "pawl".inbox i
                    where i.shard = p_shard and i.run_id = l.run_id and i.taken_seq is null offset 0)
    returning l.run_id
  )
  select array_agg(t.run_id) into v_told from told t;
  perform "pawl".hint_runs_v1('t', v_told);
end
$function$;

create function pawl.wake_told_v1(p_shard smallint, p_runs uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog'
 SET lock_timeout TO '250ms'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
AS $function$
declare
  v_locked uuid[] := p_runs || "pawl".parents_of_v1(p_shard, p_runs) || "pawl".chain_ends_v1(p_shard, p_runs);
  v_wake uuid[];
begin
  perform 1 from (select 1 from "pawl".run r
                   where r.shard = p_shard and r.id = any (v_locked)
                   order by r.id for no key update) r;
  v_wake := array(select r.id from "pawl".run r
                   where r.shard = p_shard and r.id = any (p_runs) and "pawl".end_status_v1(p_shard, r.id) is null)
         || "pawl".forward_messages_v1(p_shard, p_runs, v_locked);
  if v_wake <> '{}' then
    perform "pawl".wake_runs_v1(p_shard, clock_timestamp(), v_wake);
  end if;
end
$function$;

create function pawl.why(run uuid)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET jit TO 'off'
AS $function$
declare
  v_now timestamptz := clock_timestamp();
  v_run "pawl".run;
  v_pack "pawl".pack;
  v_ready "pawl".ready;
  v_lease "pawl".lease;
  v_parked "pawl".parked;
  v_worker "pawl".worker;
  v_able text;
  v_alive bigint;
  v_steps text;
begin
  select r.* into v_run from "pawl".run r where r.id = why.run;
  if v_run.id is null or "pawl".end_status_v1(v_run.shard, v_run.id) is not null then
    return null;
  end if;

  select k.id, k.ready_at, k.worker_id, k.claimed_at into v_pack.id, v_pack.ready_at, v_pack.worker_id, v_pack.claimed_at
    from "pawl".pack k
   where k.id = v_run.pack_id and k.shard = v_run.shard and v_run.id = any (k.run_ids);
  select l.worker_id, l.claimed_at into v_lease.worker_id, v_lease.claimed_at
    from "pawl".lease l where l.run_id = v_run.id and l.shard = v_run.shard;
  if not found then
    v_lease.worker_id := v_pack.worker_id;
    v_lease.claimed_at := v_pack.claimed_at;
  end if;
  if v_lease.worker_id is not null then
    select w.* into v_worker from "pawl".worker w where w.id = v_lease.worker_id;
    if v_worker.ended_at is not null or v_worker.heard_at <= v_now - v_worker.lease_ms * interval '1 millisecond' then
      return format('another worker to take it over: worker %s on host %s (pid %s) was last heard of at %s',
                    v_worker.id, v_worker.host, v_worker.pid, "pawl".instant_text_v1(v_worker.heard_at));
    end if;
    select string_agg(format('%s since %s', s.step, "pawl".instant_text_v1(to_timestamp(s."beganAt" / 1000.0))), ', '
                      order by s."beganAt")
      into v_steps
      from json_to_recordset(v_worker.long_steps) as s ("runId" uuid, step text, "beganAt" float8)
     where s."runId" = v_run.id;
    return format('worker %s on host %s (pid %s), which has held it since %s', v_worker.id, v_worker.host, v_worker.pid,
                  "pawl".instant_text_v1(v_lease.claimed_at)) || coalesce('; step ' || v_steps, '');
  end if;

  v_able := format('for %s@%s on queue "%s"', v_run.workflow, v_run.version, v_run.queue);
  select y.* into v_ready from "pawl".ready y where y.run_id = v_run.id and y.shard = v_run.shard;
  if v_pack.id is not null then
    v_ready.ready_at := v_pack.ready_at;
    v_ready.suspect := false;
  end if;
  if v_ready.ready_at is not null then
    if exists (select 1 from "pawl".queue q where q.name = v_run.queue and q.paused_at is not null) then
      return format('a resume of queue "%s"', v_run.queue);
    end if;
    select count(*) into v_alive
      from "pawl".worker w
     where w.swept_at is null and w.ended_at is null
       and w.heard_at > v_now - w.lease_ms * interval '1 millisecond'
       and v_run.queue = any (w.queues) and v_run.workflow || '@' || v_run.version = any (w.workflows);
    if v_alive = 0 then
      return 'a worker ' || v_able || ': there is none';
    end if;
    return format('its turn since %s: %s', "pawl".instant_text_v1(v_ready.ready_at),
                  case v_alive when 1 then 'one worker lives ' else v_alive || ' workers live ' end) || v_able
           || case when v_ready.suspect then '; its last one died, so it is tried alone' else '' end;
  end if;

  select p.* into v_parked from "pawl".parked p where p.run_id = v_run.id and p.shard = v_run.shard;
  case v_parked.reason
    when 'delayed' then
      return 'its start at ' || "pawl".instant_text_v1(v_parked.due_at);
    when 'retry' then
      return format('attempt %s at %s', v_parked.attempt, "pawl".instant_text_v1(v_parked.due_at))
             || coalesce(', after ' || (select e.data ->> 'message' from "pawl".event e
                                         where e.run_id = v_run.id and e.shard = v_run.shard and e.kind = 'attempt_failed'
                                         order by e.seq desc limit 1), '');
    when 'paused' then
      return 'a resume: paused since ' || "pawl".instant_text_v1(v_parked.parked_at);
    when 'blocked' then
      return 'code that fits its history: tried again at ' || "pawl".instant_text_v1(v_parked.due_at)
             || coalesce('. ' || (select e.data ->> 'message' from "pawl".event e
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
                            from "pawl".run k
                           where k.parent_id = v_run.id and k.shard = v_run.shard
                             and "pawl".end_status_v1(k.shard, k.id) is null
                             and 'child' = any (v_parked.wants)
                           limit 3)
                          union all
                         select case when v_parked.due_at = v_run.deadline_at then 'its deadline at ' else 'the time ' end
                                || "pawl".instant_text_v1(v_parked.due_at)) t
                  where t.words is not null) t),
        'nothing: it is on its way from one room to another');
  end case;
end
$function$;

create function pawl.write_streams_v1(p_shard smallint, p_now timestamp with time zone, p_written json, p_lost uuid[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  v_runs uuid[];
begin
  with put as (
    insert into "pawl".stream (shard, run_id, at, name, position, step, attempt, is_first, is_closing, data, notes)
    select p_shard, w.run_id, p_now, w.name, w.position, w.step, w.attempt, coalesce(w.is_first, false),
           coalesce(w.is_closing, false), w.data::json, w.notes::json
      from json_to_recordset(p_written) as w (run_id uuid, name text, position integer, step text, attempt integer,
                                              is_first boolean, is_closing boolean, data text, notes text)
     where (p_lost is null or w.run_id <> all (p_lost))
       and not exists (select 1 from "pawl".stream s
                        where s.shard = p_shard and s.run_id = w.run_id and s.name = w.name and s.position = w.position
                       offset 0)
    returning run_id
  )
  select array_agg(distinct p.run_id) into v_runs from put p;
  perform "pawl".hint_runs_v1('w', v_runs);
end
$function$;
