-- The tables of DESIGN: one wide row a run, three rooms for live runs, one append-only history, one inbox.
-- No foreign keys, triggers or sequences on hot tables.
--
-- Every unique key of a hot table holds the shard, as its last column. Other indexes leave it out, or are for rows that no
-- other statement asks for: so every statement has one index to choose, and no plan depends on statistics. With the shard
-- first, a small or unknown table let the planner take an index that reads the whole shard.
-- Names that are looked up have the collation "C": no index breaks when the operating system changes its locales.

-- What a column of a hot table may hold is said by its type. A check of the table would be read from its text anew by every
-- statement that writes to it: the kinds of events alone took half of the time of an append.
create domain {schema}.ordinal as integer check (value > 0);
create domain {schema}.end_status as text check (value in ('completed', 'failed', 'cancelled', 'timed_out', 'expired'));
create domain {schema}.park_reason as text check (value in ('delayed', 'waiting', 'retry', 'paused', 'blocked'));
-- The kinds that most facts have come first: they are looked for one after the other.
create domain {schema}.event_kind as text
  check (value in ('step_completed', 'completed', 'timer_fired', 'timer_set', 'signal_received', 'child_started', 'child_ended',
    'step_intended', 'step_failed', 'step_retried', 'step_progressed', 'commit_lost', 'withdrawn', 'patched', 'published',
    'update_received', 'update_answered', 'stream_written', 'cancel_requested', 'paused', 'resumed', 'blocked', 'attempt_failed',
    'attempt_crashed', 'input_parsed', 'rescheduled', 'undo_began', 'undo_retried', 'undo_completed', 'undo_failed', 'forked',
    'redriven', 'continued', 'failed', 'cancelled', 'timed_out', 'expired'));

-- The runs of a pack, in the order of their ids, which were made within a second.
create domain {schema}.packed_runs as uuid[] check (cardinality(value) between 1 and 64);

-- What a run is. How it ended is its last fact, in event: a row as wide as this is not written a second time.
create table {schema}.run (
  id              uuid        not null,
  parent_id       uuid,
  root_id         uuid,                            -- null: the run is its own root
  forked_from     uuid,                            -- the run whose history it began with
  first_id        uuid,                            -- the run whose chain this one goes on; null: it went on from none
  continued_as    uuid,                            -- the run that goes on from this one, which has ended by that
  pack_id         uuid,                            -- the pack that it was put into when it was started, which may be long gone
  created_at      timestamptz not null,
  start_at        timestamptz,                     -- not claimable before; null: at once
  expires_at      timestamptz,                     -- ends as expired unless begun by then
  deadline_at     timestamptz,                     -- ends as timed_out by then
  version         integer     not null,
  priority        integer     not null,
  depth           integer     not null,
  shard           smallint    not null,
  detached        boolean,                         -- a child that goes on when its parent is stopped or fails
  raw             boolean,                         -- true: its input has not been parsed by its workflow yet
  workflow        text        not null,
  queue           text        not null,
  key             text,
  parent_request  text,
  fifo_key        text,
  batch_key       text,
  tenant          text,
  tags            text[],
  retry           json,                            -- null: as its workflow says
  input           json,
  input_notes     json,
  primary key (id, shard)
);

-- Serves: cancelling the children of a run, listing them.
create index run_parent on {schema}.run (parent_id) where parent_id is not null;
-- Serves: the run at the end of a chain. There is one in each.
create unique index run_chain on {schema}.run (first_id, shard) where first_id is not null and continued_as is null;

-- The runs that ended otherwise than by completing: few, and asked for most. What a redrive goes on from, and why they ended.
create table {schema}.stopped (
  run_id          uuid        not null,
  ended_at        timestamptz not null,
  shard           smallint    not null,
  epoch           integer     not null,            -- of its last holder
  attempt         integer     not null,            -- its last one
  status          {schema}.end_status not null,
  error_code      text        collate "C",
  error           json,
  error_notes     json,
  primary key (run_id, shard)
);

-- Serves: list_runs, by status.
create index stopped_status on {schema}.stopped (status, run_id);
-- Serves: list_runs, by error code.
create index stopped_error on {schema}.stopped (error_code, run_id) where error_code is not null;

-- Serves: list_runs, by tag. As rows: an index on an array knows no order.
create table {schema}.tag (
  run_id          uuid        not null,
  shard           smallint    not null,
  tag             text        collate "C" not null,
  primary key (tag, run_id, shard)
);

-- What travels with a run from room to room.
create type {schema}.room as (
  run_id          uuid,
  epoch           integer,
  last_seq        integer,
  attempt         integer,
  failures        smallint,
  crashes         smallint,
  suspicion       smallint,
  told            boolean
);

-- Where something stands in the order of claiming.
create type {schema}.place as (
  priority        integer,
  ready_at        timestamptz,
  run_id          uuid
);

-- What a holder still holds of the runs that it names, and which of them were told something. Nobody else can change that before
-- the transaction that found it ends.
create type {schema}.held as (
  runs            uuid[],
  told            uuid[]                           -- null: none
);

-- What may be claimed now, and nothing else: small and hot.
create table {schema}.ready (
  run_id          uuid        not null,
  ready_at        timestamptz not null,
  expires_at      timestamptz,                     -- unless it has begun: not claimable any more
  epoch           integer     not null,
  last_seq        integer     not null,
  attempt         integer     not null,
  priority        integer     not null,
  version         integer     not null,
  failures        smallint    not null,
  crashes         smallint    not null,
  suspicion       smallint    not null,
  shard           smallint    not null,
  told            boolean     not null,
  suspect         boolean     not null generated always as (suspicion >= 2) stored,
  queue           text        collate "C" not null,
  workflow        text        collate "C" not null,
  fifo_key        text,
  batch_key       text,
  tenant          text,
  primary key (run_id, shard)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_scale_factor = 0.2);

-- Serves: claim_runs. One lane (queue, workflow, version) is one range, in the order of claiming. The id stands last as bytes,
-- which sort alike: as a uuid it would offer this index to whoever looks for a run by its id.
create index ready_claim on {schema}.ready (queue, workflow, version, suspect, priority, ready_at, uuid_send(run_id));
-- Serves: claim_runs. Whether suspects wait; nearly always empty.
create index ready_suspect on {schema}.ready (queue, workflow, version, priority) where suspect;
-- Serves: sweep, expiry.
create index ready_expiry on {schema}.ready (shard, expires_at) where expires_at is not null;

-- Plain runs that were started together, in one row here instead of one each in ready: claimable now, and never claimed yet. A claim takes
-- whole packs for its worker, which then holds all of their runs in one row instead of one each in lease: until they all have completed.
-- Whoever has to do with some of them only puts them into ready first, or into lease (unpack_runs).
create table {schema}.pack (
  id              uuid        not null,            -- the last of its runs
  ready_at        timestamptz not null,
  priority        integer     not null,
  version         integer     not null,
  shard           smallint    not null,
  queue           text        collate "C" not null,
  workflow        text        collate "C" not null,
  run_ids         {schema}.packed_runs not null,
  inputs          text,                            -- a JSON list of their texts, so that a claim need not read run; null: too long, or cut
  worker_id       uuid,                            -- who holds it, in the first epoch; null: nobody
  claimed_at      timestamptz,
  began_at        timestamptz,                     -- as in lease
  crash_limit     smallint,                        -- as in lease
  primary key (id, shard),
  constraint pack_held check ((worker_id is null) = (claimed_at is null) and (worker_id is null) = (crash_limit is null))
) with (fillfactor = 60, toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- Serves: claim_runs, as ready_claim does.
create index pack_claim on {schema}.pack (queue, workflow, version, priority, ready_at, uuid_send(id)) where worker_id is null;
-- Serves: heartbeat, sweep, retire_worker, as lease_worker does.
create index pack_worker on {schema}.pack (worker_id, claimed_at) where worker_id is not null;

-- What a worker holds. Every write by a holder locks its row here and names run, epoch and worker.
create table {schema}.lease (
  run_id          uuid        not null,
  worker_id       uuid        not null,
  claimed_at      timestamptz not null,
  began_at        timestamptz,                     -- null: claimed, but its code has not begun
  epoch           integer     not null,
  last_seq        integer     not null,            -- as at the claim
  attempt         integer     not null,
  failures        smallint    not null,
  crashes         smallint    not null,
  suspicion       smallint    not null,
  crash_limit     smallint    not null,
  shard           smallint    not null,
  told            boolean     not null,
  looks           integer     not null default 0,  -- the holder's last look: a try of it that comes later is seen by nobody
  primary key (run_id, shard)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- Serves: heartbeat, sweep, retire_worker. They ask in the order of claiming, which makes it their only choice.
create index lease_worker on {schema}.lease (worker_id, claimed_at);

-- What waits: until when, and for which messages.
create table {schema}.parked (
  run_id          uuid        not null,
  parked_at       timestamptz not null,
  due_at          timestamptz,
  epoch           integer     not null,
  last_seq        integer     not null,
  attempt         integer     not null,
  failures        smallint    not null,
  crashes         smallint    not null,
  suspicion       smallint    not null,
  shard           smallint    not null,
  reason          {schema}.park_reason not null,
  wants           text[]      not null,
  fires           text,                            -- the timer that fires at due_at, by its request; null: none does
  primary key (run_id, shard)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- Serves: list_runs, by the statuses that few runs have.
create index parked_reason on {schema}.parked (reason, run_id) where reason <> 'waiting';
-- Serves: wake_due.
create index parked_due on {schema}.parked (shard, due_at) where due_at is not null;

-- The append-only history of every run; seq is dense from 1 in each. A run whose last fact is an end_status has ended so.
create table {schema}.event (
  run_id          uuid        not null,
  at              timestamptz not null,
  began_at        timestamptz,
  due_at          timestamptz,
  worker_id       uuid,
  seq             {schema}.ordinal not null,
  attempt         integer,
  epoch           integer,                         -- of the holder that completed the run; null: the first
  shard           smallint    not null,
  format          smallint,                        -- what its kind and data mean; null: 1, the first
  kind            {schema}.event_kind not null,
  name            text,
  data            json,                            -- of completed: the run's output
  notes           json,
  primary key (run_id, seq, shard)
);

-- Serves: what happened lately, over all runs.
create index event_at on {schema}.event using brin (at);
-- Serves: patches.
create index event_patched on {schema}.event (name, run_id) where kind = 'patched';

-- What others tell a run. Kept after it was taken, so that its idempotency key holds.
create table {schema}.inbox (
  run_id          uuid        not null,
  id              uuid        not null,
  chain_id        uuid,                            -- the first run of the chain that its run goes on; null: it goes on none
  sent_to         uuid,                            -- the run it was written for, which went on as this one; null: this one
  sent_at         timestamptz not null,
  taken_seq       integer,                         -- the event that took it; 0: taken without one; null: unread
  answer_seq      integer,                         -- for updates: the event that answered it
  shard           smallint    not null,
  topic           text        collate "C" not null,
  name            text,
  idempotency_key text        collate "C",
  data            json,
  notes           json,
  primary key (run_id, id, shard)
);

-- Serves: tell (a repeated send is one message, whichever run of a chain it was sent to).
create unique index inbox_idempotency on {schema}.inbox (coalesce(chain_id, run_id), idempotency_key, shard)
  where idempotency_key is not null;
-- Serves: the one predicate, read_inbox.
create index inbox_unread on {schema}.inbox (run_id, topic) where taken_seq is null;

-- The callers' idempotency keys.
create table {schema}.key (
  run_id          uuid        not null,
  version         integer     not null,
  shard           smallint    not null,
  key             text        collate "C" not null,
  workflow        text        not null,
  input_hash      bytea,
  primary key (key, shard)
);

create table {schema}.worker (
  id              uuid        primary key,
  started_at      timestamptz not null,
  heard_at        timestamptz not null,
  ended_at        timestamptz,                     -- retired or found dead; its heartbeat is refused from then on
  swept_at        timestamptz,                     -- ended, and nothing of it is left in lease
  lease_ms        integer     not null,
  pid             integer     not null,
  concurrency     integer     not null,
  held_at_end     integer,                         -- begun leases when it was found dead
  host            text        not null,
  queues          text[]      not null,
  workflows       text[]      not null default '{}', -- what it can execute, as name@version
  settings        json,                            -- versions and settings, for people
  long_steps      json                             -- steps running for longer than a heartbeat; null: none
) with (fillfactor = 70);

-- Serves: sweep, list_workers.
create index worker_unswept on {schema}.worker (id) where swept_at is null;
-- Serves: list_workers.
create index worker_ended on {schema}.worker (ended_at) where ended_at is not null;

create table {schema}.worker_sample (
  worker_id       uuid        not null,
  at              timestamptz not null,
  held            integer     not null,
  memory_bytes    bigint,
  cpu_ratio       real,                            -- 1 is one core
  lag_ms          real,                            -- the longest that the event loop was late
  primary key (worker_id, at)
);

create table {schema}.queue (
  name            text        collate "C" primary key,
  paused_at       timestamptz,
  concurrency     integer,
  rate            integer,
  rate_period_ms  integer,
  settings        json
);

create table {schema}.schedule (
  name            text        collate "C" primary key,
  workflow        text        not null,
  version         integer     not null,
  cron            text        not null,
  time_zone       text        not null,
  paused_at       timestamptz,
  last_slot_at    timestamptz,
  next_slot_at    timestamptz,
  last_run_id     uuid,
  run_count       bigint      not null,
  definition_hash text        not null,
  input           json,
  input_notes     json
);

-- What runs write to their streams; position is dense from 1 in each.
create table {schema}.stream (
  run_id          uuid        not null,
  at              timestamptz not null,
  position        integer     not null,
  attempt         integer,                         -- of the step
  shard           smallint    not null,
  is_first        boolean     not null,            -- the first that this attempt of the step wrote there
  is_closing      boolean     not null,            -- nothing follows it
  name            text        collate "C" not null,
  step            text,                            -- who wrote it; null: the run's own code
  data            json,
  notes           json,
  primary key (run_id, name, position, shard)
);

create table {schema}.audit (
  id              uuid        primary key,
  at              timestamptz not null,
  actor           text        not null,
  action          text        not null,
  run_id          uuid,
  details         json
);
