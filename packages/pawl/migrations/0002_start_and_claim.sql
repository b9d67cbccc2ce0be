-- Starting runs and claiming them. Functions carry their version in the name: old and new workers live side by side.
--
-- A hot statement has one good plan, whatever the statistics say: one index fits it, by its columns or by its order with
-- sorting turned off. A list meets a table as `= any (array)` on its primary key, or in a lateral subquery with `offset 0`
-- (or a lock), which the planner cannot turn into a join of its own choosing. Rows that nobody else can have updated since
-- they were found are reached by their ctid. See docs/decisions/0004-plans.md.

-- Names the server as long as it runs: when it was started. One that took its place, or was started anew, may have lost its last writes.
create function {schema}.server_v1()
returns float8
language plpgsql stable
as $$
begin
  return extract(epoch from pg_postmaster_start_time()) * 1000;
end
$$;

-- Inserts runs and puts each into its first room. An id that exists is left alone, so the call is safe to repeat.
-- Locks: only what it inserts. p_skip: ids to leave out. p_holder: a worker that holds those which it could claim now, or null.
-- Answers the runs that it holds.
create function {schema}.put_runs_v1(p_shard smallint, p_now timestamptz, p_runs json, p_skip uuid[],
                                     p_holder uuid, p_crash_limit smallint)
returns uuid[]
language plpgsql
as $$
declare
  v_queues text[];
  v_held uuid[];
begin
  with born as (
    insert into {schema}.run (shard, id, workflow, version, queue, priority, input, input_notes, key, created_at,
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
          from {schema}.run p
         where p.shard = p_shard and p.id = n.parent_id
        offset 0) parent on true
     where p_skip is null or n.id <> all (p_skip)
    on conflict (shard, id) do nothing
    returning id, queue, workflow, version, priority, least(expires_at, deadline_at) as expires_at, start_at, tags,
              p_holder is not null and (start_at > p_now) is not true
                and (least(expires_at, deadline_at) <= p_now) is not true
                and not exists (select 1 from {schema}.queue q
                                 where q.name = run.queue and q.paused_at is not null offset 0) as is_held
  ), tagged as (
    insert into {schema}.tag (shard, run_id, tag)
    select p_shard, b.id, t
      from born b
     cross join unnest(b.tags) t
    on conflict do nothing
  ), delayed as (
    insert into {schema}.parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes,
                                 suspicion, reason, wants)
    select p_shard, b.id, p_now, least(b.start_at, b.expires_at), 0, 0, 1, 0, 0, 0, 'delayed', '{cancel,pause}'::text[]
      from born b
     where b.start_at > p_now
  ), now_ready as (
    insert into {schema}.ready (shard, run_id, ready_at, expires_at, epoch, last_seq, attempt, priority, version,
                                failures, crashes, suspicion, told, queue, workflow)
    select p_shard, b.id, p_now, b.expires_at, 0, 0, 1, b.priority, b.version, 0, 0, 0, false, b.queue, b.workflow
      from born b
     where not b.is_held and (b.start_at is null or b.start_at <= p_now)
    returning queue
  ), held as (
    insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                crashes, suspicion, crash_limit, told)
    select p_shard, b.id, p_holder, p_now, p_now, 1, 0, 1, 0, 0, 0, p_crash_limit, false
      from born b
     where b.is_held
    returning run_id
  )
  select (select array_agg(distinct r.queue) from now_ready r), (select array_agg(h.run_id) from held h) into v_queues, v_held;

  if v_queues is not null then
    perform {schema}.hint_ready_v1(v_queues);
  end if;
  return v_held;
end
$$;

-- Tells listeners that these queues have work. Payload: 'r' and the queue's name.
create function {schema}.hint_ready_v1(p_queues text[])
returns void
language plpgsql
as $$
begin
  if p_queues is not null then
    perform pg_notify('{channel}', 'r' || q) from unnest(p_queues) q group by q;
  end if;
end
$$;

-- Tells listeners of runs: p_kind ('t' told, 'e' ended, 's' sent, 'a' answered, 'w' written) and their ids, many to a notification.
create function {schema}.hint_runs_v1(p_kind text, p_runs uuid[])
returns void
language plpgsql
as $$
begin
  for v_first in 1 .. coalesce(cardinality(p_runs), 0) by 200 loop
    perform pg_notify('{channel}', p_kind || replace(array_to_string(p_runs[v_first : v_first + 199], ','), '-', ''));
  end loop;
end
$$;

-- Whether a run is in a pack. Index: run_pkey, pack_pkey.
create function {schema}.is_packed_v1(p_shard smallint, p_run uuid)
returns boolean
language plpgsql stable
as $$
begin
  return exists (select 1
                   from {schema}.run r
                  cross join lateral (
                    select k.run_ids from {schema}.pack k where k.shard = p_shard and k.id = r.pack_id offset 0) k
                  where r.shard = p_shard and r.id = p_run and p_run = any (k.run_ids));
end
$$;

-- The packs that these runs are in; p_worker: of those which it holds. Nobody comes into a pack later: who is in none when looked at
-- without a lock never will be. Index: run_pkey, pack_pkey.
create function {schema}.packs_of_v1(p_shard smallint, p_runs uuid[], p_worker uuid)
returns uuid[]
language plpgsql stable
as $$
begin
  return array(
    select distinct k.id
      from {schema}.run r
     cross join lateral (
       select k.id, k.run_ids, k.worker_id from {schema}.pack k where k.shard = p_shard and k.id = r.pack_id offset 0) k
     where r.shard = p_shard and r.id = any (p_runs) and r.pack_id is not null and r.id = any (k.run_ids)
       and (p_worker is null or k.worker_id = p_worker));
end
$$;

-- Puts the runs of these packs, which its caller has locked, into ready, or into lease where a worker holds them. Index: pack_pkey.
create function {schema}.unpack_v1(p_shard smallint, p_packs uuid[])
returns void
language plpgsql
as $$
begin
  with gone as (
    delete from {schema}.pack k
     where k.shard = p_shard and k.id = any (p_packs)
    returning k.ready_at, k.priority, k.version, k.queue, k.workflow, k.run_ids, k.worker_id, k.claimed_at, k.began_at, k.crash_limit
  ), held as (
    insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                crashes, suspicion, crash_limit, told)
    select p_shard, u, g.worker_id, g.claimed_at, g.began_at, 1, 0, 1, 0, 0, 0, g.crash_limit, false
      from gone g
     cross join unnest(g.run_ids) u
     where g.worker_id is not null
  )
  insert into {schema}.ready (shard, run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes,
                              suspicion, told, queue, workflow)
  select p_shard, u, g.ready_at, 0, 0, 1, g.priority, g.version, 0, 0, 0, false, g.queue, g.workflow
    from gone g
   cross join unnest(g.run_ids) u
   where g.worker_id is null;
end
$$;

-- Puts these runs into ready that are in packs, or into lease where a worker holds them, with all others of their packs.
-- Locks: the packs, in id order, once their caller has the rows of the runs, and before it has leases. Index: run_pkey, pack_pkey.
create function {schema}.unpack_runs_v1(p_shard smallint, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_packs uuid[] := {schema}.packs_of_v1(p_shard, p_runs, null);
begin
  if v_packs = '{}' then
    return;
  end if;
  perform 1 from (select 1 from {schema}.pack k
                   where k.shard = p_shard and k.id = any (v_packs)
                   order by k.id for update) k;
  perform {schema}.unpack_v1(p_shard, v_packs);
end
$$;

-- Gives leases of their own to those of these runs that this worker holds in packs, with all others of those packs. False: it holds none so.
-- Locks: the packs, in id order. A caller that has leases by then may wait for who waits for them, until the lock timeout: both are tried again.
create function {schema}.unpack_held_v1(p_shard smallint, p_worker uuid, p_runs uuid[])
returns boolean
language plpgsql
as $$
declare
  v_packs uuid[] := {schema}.packs_of_v1(p_shard, p_runs, p_worker);
begin
  if v_packs = '{}' then
    return false;
  end if;
  perform 1 from (select 1 from {schema}.pack k
                   where k.shard = p_shard and k.id = any (v_packs)
                   order by k.id for update) k;
  perform {schema}.unpack_v1(p_shard, v_packs);
  return true;
end
$$;

-- Does the same for runs that have nothing but what all have: no parent, key, tags, times or terms of their own. Most runs are such,
-- and take less as columns and in two plain inserts. A column of one value but the ids says it of all; most often all four do.
-- p_paused: the queues that are, where there is a holder. p_packed: all are of one lane and priority, and in the order of their ids, which
-- were made within a second: what nobody holds is put into packs.
create function {schema}.put_plain_runs_v1(
  p_shard smallint, p_now timestamptz, n_ids uuid[], n_workflows text[], n_versions integer[], n_queues text[],
  n_priorities integer[], n_inputs text[], n_notes text[], p_packed boolean, p_holder uuid, p_crash_limit smallint, p_paused text[])
returns uuid[]
language plpgsql
as $$
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
      insert into {schema}.run (shard, id, workflow, version, queue, priority, input, input_notes, created_at, depth, pack_id)
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
    insert into {schema}.run (shard, id, workflow, version, queue, priority, input, input_notes, created_at, depth, pack_id)
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
    insert into {schema}.pack (shard, id, ready_at, priority, version, queue, workflow, run_ids, inputs)
    select p_shard, n_ids[least(f + 63, v_count)], p_now, v_priority, v_version, v_queue, v_workflow, n_ids[f : f + 63],
           case when n_notes is null and coalesce(i.bytes, 0) <= 3072 then coalesce(array_to_json(n_inputs[f : f + 63])::text, '[]') end
      from generate_series(1, v_count, 64) f
     cross join lateral (select sum(octet_length(t)) as bytes from unnest(n_inputs[f : f + 63]) t) i;
    perform {schema}.hint_ready_v1(n_queues);
    return null;
  end if;
  if v_new < v_count then
    select array_agg(n.id), array_agg(n.workflow), array_agg(n.version), array_agg(n.queue), array_agg(n.priority)
      into n_ids, n_workflows, n_versions, n_queues, n_priorities
      from (select distinct on (n.id) n.id, coalesce(n.workflow, v_workflow) as workflow, coalesce(n.version, v_version) as version,
                   coalesce(n.queue, v_queue) as queue, coalesce(n.priority, v_priority) as priority
              from unnest(n_ids, n_workflows, n_versions, n_queues, n_priorities) n (id, workflow, version, queue, priority)
             where not exists (select 1 from {schema}.ready y where y.shard = p_shard and y.run_id = n.id offset 0)
               and not exists (select 1 from {schema}.lease l where l.shard = p_shard and l.run_id = n.id offset 0)
               and not exists (select 1 from {schema}.parked p where p.shard = p_shard and p.run_id = n.id offset 0)
               and not exists (select 1 from {schema}.event e where e.shard = p_shard and e.run_id = n.id offset 0)
               and not {schema}.is_packed_v1(p_shard, n.id)) n;
    if n_ids is null then
      return null;
    end if;
  end if;

  if p_holder is not null then
    insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
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

  insert into {schema}.ready (shard, run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes,
                              suspicion, told, queue, workflow)
  select p_shard, n.id, p_now, 0, 0, 1, coalesce(n.priority, v_priority), coalesce(n.version, v_version), 0, 0, 0, false,
         coalesce(n.queue, v_queue), coalesce(n.workflow, v_workflow)
    from unnest(n_ids, n_workflows, n_versions, n_queues, n_priorities) n (id, workflow, version, queue, priority)
   where v_held is null or coalesce(n.queue, v_queue) = any (p_paused);
  if v_held is not null then
    n_queues := array(select q from unnest(n_queues) q where q = any (p_paused));
  end if;
  perform {schema}.hint_ready_v1(n_queues);
  return v_held;
end
$$;

-- Creates runs: p_runs, or, where that is null, plain ones, in the columns n_*; p_packed: as for put_plain_runs. Answers as start_runs does, and last those that
-- p_holder now holds, with the time since when and the server; run_id null: all of them. It holds none where it could not claim them
-- now, or has ended.
-- Locks: as start_runs, and p_holder's row as claim_runs does.
create function {schema}.create_runs_v1(
  p_shard smallint, p_runs json, p_keyed boolean, p_whole boolean, p_holder uuid, p_crash_limit smallint, p_lease_ms integer,
  n_ids uuid[], n_workflows text[], n_versions integer[], n_queues text[], n_priorities integer[], n_inputs text[], n_notes text[],
  p_packed boolean)
returns table (run_id uuid, outcome text, owner_id uuid, held_ms float8, told boolean, server float8)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_holder uuid := p_holder;
  v_paused text[];
  v_held uuid[];
  v_now timestamptz;
begin
  if p_holder is not null then
    v_paused := array(select q.name from {schema}.queue q where q.paused_at is not null order by q.name offset 0);
    if v_paused <> '{}'
       and v_paused @> coalesce(n_queues, array(select n.queue from json_to_recordset(p_runs) as n (queue text))) then
      v_holder := null;
    elsif not {schema}.keep_worker_v1(p_holder, {clock}, p_lease_ms) then
      v_holder := null;
    end if;
  end if;
  v_now := {clock};

  if p_runs is null then
    v_held := {schema}.put_plain_runs_v1(p_shard, v_now, n_ids, n_workflows, n_versions, n_queues, n_priorities, n_inputs, n_notes,
                                         p_packed, v_holder, p_crash_limit, v_paused);
  elsif p_keyed then
    return query
    select s.run_id, s.outcome, s.owner_id, null::float8, null::boolean, null::float8
      from {schema}.start_runs_v1(p_shard, p_runs, p_keyed, p_whole, v_holder, p_crash_limit) s;
  else
    v_held := {schema}.put_runs_v1(p_shard, v_now, p_runs, null, v_holder, p_crash_limit);
  end if;

  if cardinality(v_held) = coalesce(cardinality(n_ids), json_array_length(p_runs)) then
    held_ms := floor(extract(epoch from v_now) * 1000);
    told := false;
    server := {schema}.server_v1();
    return next;
  -- An earlier try, whose answer was lost, may have been the one that counted. What p_holder has claimed since is no start's:
  -- its claim answers for that.
  elsif p_holder is not null then
    n_ids := coalesce(n_ids, array(select n.id from json_to_recordset(p_runs) as n (id uuid)));
    return query
    select l.run_id, 'created', l.run_id, floor(extract(epoch from l.claimed_at) * 1000)::float8, l.told,
           {schema}.server_v1()
      from {schema}.lease l
     where l.shard = p_shard and l.run_id = any (n_ids)
       and (l.worker_id = p_holder) is true and l.epoch = 1 and l.last_seq = 0
       and l.claimed_at = (select r.created_at from {schema}.run r where r.shard = p_shard and r.id = l.run_id);
  end if;
end
$$;

-- Makes sure that a worker which is about to hold something lives until that is done, with its lease while it holds something:
-- one that rests has another. False: it has ended.
-- Locks: the worker's row (key share: a sweep that ends it waits or skips). Index: worker_pkey.
create function {schema}.keep_worker_v1(p_worker uuid, p_now timestamptz, p_lease_ms integer)
returns boolean
language plpgsql
as $$
declare
  v_lease_ms integer;
begin
  select w.lease_ms into v_lease_ms from {schema}.worker w where w.id = p_worker and w.ended_at is null for key share;
  -- It rests no longer. What it holds now must not outlive it by more than its own lease.
  if v_lease_ms <> p_lease_ms then
    update {schema}.worker w
       set heard_at = p_now, lease_ms = p_lease_ms
     where w.id = p_worker and w.ended_at is null
       and w.heard_at > p_now - w.lease_ms * interval '1 millisecond';
  end if;
  return found;
end
$$;

-- Creates runs. Answers only for runs with a key (and only when p_keyed): 'created', 'existing' or 'conflict', and the id that has the key.
-- p_whole: all of them or none. A conflict then withholds the others, which are answered 'withheld'.
-- Locks: the keys it inserts, in their order; waits for a key that another open transaction is inserting.
-- Index: key_pkey. The look at taken keys is a statement of its own, so it sees what was committed while we waited.
-- Its settings are its callers': a batch of ours does not wait long for a key, a caller's transaction does.
-- p_holder, p_crash_limit: as for put_runs.
create function {schema}.start_runs_v1(p_shard smallint, p_runs json, p_keyed boolean, p_whole boolean,
                                       p_holder uuid, p_crash_limit smallint)
returns table (run_id uuid, outcome text, owner_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := {clock};
  v_answers json;
  v_skip uuid[];
begin
  if not p_keyed then
    perform {schema}.put_runs_v1(p_shard, v_now, p_runs, null, p_holder, p_crash_limit);
    return;
  end if;

  insert into {schema}.key (shard, key, run_id, workflow, version, input_hash)
  select p_shard, n.key, n.id, n.workflow, n.version, {schema}.input_hash_v1(n.input, n.notes)
    from rows from (json_to_recordset(p_runs) as (id uuid, workflow text, version integer, input text, notes text, key text))
         with ordinality as n (id, workflow, version, input, notes, key, place)
   where n.key is not null
   order by n.key, n.place
  on conflict (shard, key) do nothing;

  -- A repeated call is one though its run has passed its key on to the one that it went on as.
  select json_agg(json_build_object('id', n.id, 'owner', k.run_id, 'outcome',
           case when k.run_id = n.id then 'created'
                when exists (select 1 from {schema}.run r
                              where r.shard = p_shard and r.id = n.id and (r.key = n.key) is true offset 0) then 'created'
                when n.must_be_new is not true and k.workflow = n.workflow and k.version = n.version
                     and k.input_hash is not distinct from {schema}.input_hash_v1(n.input, n.notes) then 'existing'
                else 'conflict' end)),
         array_agg(n.id) filter (where k.run_id <> n.id)
    into v_answers, v_skip
    from json_to_recordset(p_runs) as n (id uuid, workflow text, version integer, input text, notes text, key text,
                                         must_be_new boolean)
   cross join lateral (
     select k.run_id, k.workflow, k.version, k.input_hash
       from {schema}.key k
      where k.shard = p_shard and k.key = n.key
     offset 0) k;

  if p_whole and exists (select 1 from json_to_recordset(v_answers) a (outcome text) where a.outcome = 'conflict') then
    v_skip := array(select n.id from json_to_recordset(p_runs) as n (id uuid));
    delete from {schema}.key k
     where k.shard = p_shard and k.key = any (array(select n.key from json_to_recordset(p_runs) as n (key text)))
       and (k.run_id = any (v_skip)) is true
       and not exists (select 1 from {schema}.run r where r.shard = p_shard and r.id = k.run_id offset 0);
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
  perform {schema}.put_runs_v1(p_shard, v_now, p_runs, v_skip, p_holder, p_crash_limit);
end
$$;

-- The same for every client: key order and spelling of numbers do not matter. These hashes are those of hash partitions,
-- so they survive upgrades of the server. Of what a codec made, which differs each time, the digest in the notes tells.
create function {schema}.input_hash_v1(p_input text, p_notes text)
returns bytea
language plpgsql immutable
as $$
begin
  if p_notes is not null then
    return coalesce(sha256(convert_to(p_notes::json ->> 'digest', 'UTF8')),
                    {schema}.input_hash_v1(p_input, null) || {schema}.input_hash_v1(p_notes, null));
  end if;
  return int8send(jsonb_hash_extended(p_input::jsonb, 0)) || int8send(jsonb_hash_extended(p_input::jsonb, 1));
end
$$;

-- Takes so many runs of one lane from its packs, from those between two places, in their order, and answers, in no order, whole
-- packs, which the worker holds from now on, and the runs that it has cut from one. Where it has 128 or more by then, it leaves a pack
-- that it would have to cut, and says so. Passes over packs that others have locked.
-- Locks: the packs that it takes from. Index: pack_claim.
create function {schema}.take_packed_v1(
  p_shard smallint, p_queue text, p_workflow text, p_version integer, p_after {schema}.place, p_before {schema}.place, p_limit integer,
  p_worker uuid, p_now timestamptz, p_began_at timestamptz, p_crash_limit smallint,
  out packs uuid[], out cut uuid[], out taken integer, out has_left boolean)
language plpgsql
as $$
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
        from {schema}.pack k
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
      update {schema}.pack k
         set worker_id = p_worker, claimed_at = p_now, began_at = p_began_at, crash_limit = p_crash_limit
        from summed s
       where k.ctid = s.place and s.size <= s.room
      returning k.id, s.size
    ), parted as (
      update {schema}.pack k set run_ids = s.run_ids[s.room + 1 :], inputs = null
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
$$;

-- Moves claimable runs from ready, and out of packs, to lease. Lanes are parallel arrays; each is looked at behind its own mark.
-- What has expired is left for the sweep. A run whose first crash would fail it (crash limit 0) is not begun by its claim:
-- an answer that is lost must cost it nothing.
-- First peeks without locking, so that an empty look takes no transaction id, and shares the limit out
-- over the lanes by priority and age; then locks just that many rows in each, skipping rows that others hold. The second
-- look begins where the first one found something: rows claimed before are dead, but not free to step over.
-- Where packs wait, they and the rows of ready are taken by turns, each up to the place where the other goes on.
-- Locks: the worker's row as keep_worker does, then ready rows and packs (skip locked). p_lease_ms: as for keep_worker.
-- Index: ready_claim, ready_suspect, pack_claim, run_pkey.
-- An answer carries inputs up to some bytes together, in no order; what is left out its holder asks for by itself. Their
-- sizes are known without reading them. It names the lane that a run was in, the first being 1, and has null for what most runs
-- have: epoch 1, no history, nothing told, created when ready. What else a run may have is in one column, as json, and null where it
-- has none of it. Runs of packs come in one row for each: run_id null, and the lists of them in that column; pack: which they are held in.
-- The last row answered is a footer: run_id and more null, told = suspects are waiting, created_ms = the time, ready_ms = the server,
-- epoch = 1 where more may be claimable: others had locked packs of which they may have taken a part only; 2 where more is.
create function {schema}.claim_runs_v1(
  p_shard smallint, p_worker uuid, p_limit integer, p_suspects boolean, p_begin boolean,
  p_queues text[], p_workflows text[], p_versions integer[], p_crash_limits smallint[],
  p_after_priorities integer[], p_after_ms float8[], p_after_ids uuid[], p_lease_ms integer)
returns table (
  run_id uuid, lane integer, ready_ms float8, input text, notes text, epoch integer, last_seq integer, told boolean,
  created_ms float8, more text)
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
  v_left integer := p_limit;
  v_lanes integer[];
  v_priorities integer[];
  v_ready_ats timestamptz[];
  v_run_ids uuid[];
  v_quotas integer[];
  v_suspects_waiting boolean;
  v_is_alive boolean;
  v_pack_lanes integer[];
  v_packs {schema}.place[];
  -- Where in each lane to look from, for rows of ready and for packs: behind its mark, and behind what others have locked.
  v_from {schema}.place[];
  v_passed {schema}.place[];
  v_end {schema}.place := (2147483647, 'infinity', 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_before {schema}.place;
  v_ready {schema}.place;
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
    select (m.priority, coalesce(to_timestamp(m.ready_ms / 1000.0), '-infinity'), m.run_id)::{schema}.place
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
        from (select l.lane, (k.priority, k.ready_at, k.id)::{schema}.place as place
                from unnest(p_queues, p_workflows, p_versions, v_passed)
                     with ordinality l (queue, workflow, version, priority, ready_at, run_id, lane)
               cross join lateral (
                 select k.priority, k.ready_at, k.id
                   from {schema}.pack k
                  where k.shard = p_shard and k.queue = l.queue and k.workflow = l.workflow and k.version = l.version
                    and k.worker_id is null
                    and (k.priority, k.ready_at, uuid_send(k.id)) > (l.priority, l.ready_at, uuid_send(l.run_id))
                  order by k.priority, k.ready_at, uuid_send(k.id)
                  limit 1) k
               where not exists (select 1 from {schema}.queue q where q.name = l.queue and q.paused_at is not null offset 0)) k;
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
          from {schema}.ready r
         where r.shard = p_shard and r.suspect = p_suspects
           and r.queue = l.queue and r.workflow = l.workflow and r.version = l.version
           and (r.priority, r.ready_at, uuid_send(r.run_id)) > (l.priority, l.ready_at, uuid_send(l.run_id))
           and (r.expires_at <= v_now) is not true
         order by r.priority, r.ready_at, uuid_send(r.run_id)
         limit 1) f on true
      left join lateral (
        select true as waits
          from {schema}.ready r
         where r.shard = p_shard and r.suspect
           and r.queue = l.queue and r.workflow = l.workflow and r.version = l.version
         order by r.priority
         limit 1) s on true
     where not exists (select 1 from {schema}.queue q where q.name = l.queue and q.paused_at is not null offset 0);
    if v_is_alive is null then
      if v_lanes is null and v_packs is null then
        v_is_alive := exists (select 1 from {schema}.worker w where w.id = p_worker and w.ended_at is null);
      else
        v_is_alive := {schema}.keep_worker_v1(p_worker, v_now, p_lease_ms);
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
        from {schema}.take_packed_v1(p_shard, p_queues[v_lane], p_workflows[v_lane], p_versions[v_lane], v_passed[v_lane],
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
        from {schema}.pack k
       where k.shard = p_shard and k.id = any (v_held) and k.inputs is not null;
      v_read := v_cut || array(select u
                                 from (select k.run_ids from {schema}.pack k
                                        where k.shard = p_shard and k.id = any (v_held) and k.inputs is null) k
                                cross join unnest(k.run_ids) u);
      if v_read <> '{}' then
        return query
        with held as (
          insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                      crashes, suspicion, crash_limit, told)
          select p_shard, t, p_worker, v_now, v_began_at, 1, 0, 1, 0, 0, 0, p_crash_limits[v_lane], false
            from unnest(v_cut) t
        ), claimed as materialized (
          select r.id, r.input, r.input_notes, r.created_at, r.priority, case when r.id <> all (v_cut) then r.pack_id end as pack_id,
                 v_bytes + sum(coalesce(octet_length(r.input::text), 0) + coalesce(octet_length(r.input_notes::text), 0))
                             over (rows unbounded preceding) > 8000000 as left_out
            from {schema}.run r
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
                         from {schema}.ready r
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
             from {schema}.ready r
            where r.shard = p_shard and r.suspect = p_suspects and r.queue = p_queues[l.lane]
              and r.workflow = p_workflows[l.lane] and r.version = p_versions[l.lane]
              and (r.priority, r.ready_at, uuid_send(r.run_id)) >= (l.priority, l.ready_at, uuid_send(l.run_id))
              and (r.priority, r.ready_at, uuid_send(r.run_id)) < (v_before.priority, v_before.ready_at, uuid_send(v_before.run_id))
              and (r.expires_at <= v_now) is not true
            order by r.priority, r.ready_at, uuid_send(r.run_id)
            limit l.quota
              for update skip locked) r
      ), gone as (
        delete from {schema}.ready r
         using picked p
         where r.ctid = p.place
        returning r.run_id, r.epoch + 1 as epoch, r.last_seq, r.attempt, r.failures, r.crashes, r.suspicion, r.told,
                  r.priority, r.ready_at, p.lane, p.crash_limit
      ), held as (
        insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures,
                                    crashes, suspicion, crash_limit, told)
        select p_shard, g.run_id, p_worker, v_now, case when p_begin and g.crash_limit > 0 then v_now end, g.epoch, g.last_seq, g.attempt,
               g.failures, g.crashes, g.suspicion, g.crash_limit, g.told
          from gone g
      ), claimed as materialized (
        select r.id, r.key, r.parent_id, r.root_id, r.depth, r.input, r.input_notes,
               r.created_at, r.deadline_at, r.retry, r.raw, r.tags,
               v_bytes + sum(coalesce(octet_length(r.input::text), 0) + coalesce(octet_length(r.input_notes::text), 0))
                           over (rows unbounded preceding) > 8000000 as left_out
          from {schema}.run r
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
        from {schema}.run r
       where r.shard = p_shard
         and r.id = any (array((select l.run_id from {schema}.lease l
                                 where l.worker_id = p_worker and l.claimed_at = v_now and l.shard = p_shard)
                               union all
                                select u
                                  from (select k.run_ids from {schema}.pack k
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
           from {schema}.ready r
          where r.shard = p_shard and r.suspect
            and r.queue = l.queue and r.workflow = l.workflow and r.version = l.version
          order by r.priority
          limit 1) r
       where not exists (select 1 from {schema}.queue q where q.name = l.queue and q.paused_at is not null offset 0));
  end if;

  run_id := null;
  told := v_suspects_waiting;
  epoch := case when v_has_left then 2 when v_missed and v_left > 0 then 1 end;
  created_ms := floor(extract(epoch from v_now) * 1000);
  ready_ms := {schema}.server_v1();
  return next;
end
$$;

-- Marks a run that was claimed without beginning as begun. Fenced: answers those whose lease is lost. Locks: its lease row.
-- Index: lease_pkey.
create function {schema}.begin_runs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[])
returns table (run_id uuid)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_held uuid[] := ({schema}.lock_leases_v1(p_shard, p_worker, p_runs, p_epochs)).runs;
begin
  update {schema}.lease l
     set began_at = {clock}
   where l.shard = p_shard and l.run_id = any (v_held) and l.began_at is null;

  return query select l from unnest({schema}.lost_runs_v1(p_runs, v_held)) l;
end
$$;
