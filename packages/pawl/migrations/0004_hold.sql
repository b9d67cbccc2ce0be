-- What a holder does with its run. Every function locks the lease rows first and acts only on those that still match.

-- Locks the leases that match (run, epoch, worker), in id order, and answers what is held by them. `is true` keeps the planner from
-- reaching them through lease_worker, where every lease of the worker matches. Callers name runs in id order: most often what is
-- found is what they name, and nothing need be looked for in it. What is held in packs gets leases of its own.
-- p_known: the newest fact of each that its holder knows of, where something is to be appended; p_servers: the server that they were
-- claimed from, see server_v1. Of both, one value says it of all. Another server may stand at an earlier point, which it was set back to:
-- a run whose history there does not reach so far counts as lost, and its worker gives it back when it is next heard.
create function {schema}.lock_leases_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[],
                                        p_known integer[] default null, p_servers float8[] default null)
returns {schema}.held
language plpgsql
as $$
declare
  v_held {schema}.held;
  v_epochs integer[];
begin
  select array_agg(l.run_id), array_agg(l.run_id) filter (where l.told), array_agg(l.epoch)
    into v_held.runs, v_held.told, v_epochs
    from (select l.run_id, l.epoch, l.told
            from {schema}.lease l
           where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = p_worker) is true
           order by l.run_id
             for update) l;
  -- What is missing may be held in a pack, or may have been given its lease since this looked.
  if v_held.runs is distinct from p_runs and (v_held.runs is null or not v_held.runs @> p_runs) then
    perform {schema}.unpack_held_v1(p_shard, p_worker, p_runs);
    select array_agg(l.run_id), array_agg(l.run_id) filter (where l.told), array_agg(l.epoch)
      into v_held.runs, v_held.told, v_epochs
      from (select l.run_id, l.epoch, l.told
              from {schema}.lease l
             where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = p_worker) is true
             order by l.run_id
               for update) l;
  end if;
  if v_held.runs = p_runs and v_epochs = p_epochs and (p_known is null or p_servers = array[{schema}.server_v1()]) then
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
       and bool_and(h.known = 0 or exists (select 1 from {schema}.event e
                                            where e.shard = p_shard and e.run_id = h.run_id and e.seq = h.known offset 0)));
  v_held.told := (select array_agg(t) from unnest(v_held.told) t where t = any (v_held.runs));
  return v_held;
end
$$;

-- Does the same for runs that leave: their leases are deleted, not locked first. Answers what was held, and its attempts.
-- By the order of the index, which is that of their ids. p_taken: those of them that have left already, with their packs.
create function {schema}.take_leases_v1(
  p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers float8[], p_taken uuid[],
  out runs uuid[], out attempts integer[])
language plpgsql
as $$
declare
  v_held uuid[];
begin
  if cardinality(p_taken) = cardinality(p_runs) then
    runs := p_taken;
    attempts := array_fill(1, array[cardinality(p_taken)]);
    return;
  end if;
  -- Most have the first epoch, and so the same.
  if p_epochs[1] = all (p_epochs) and p_servers = array[{schema}.server_v1()] then
    with gone as (
      delete from {schema}.lease l
       where l.shard = p_shard and l.run_id = any (p_runs) and (l.worker_id = p_worker) is true and l.epoch = p_epochs[1]
      returning l.run_id, l.attempt
    )
    select array_agg(g.run_id), array_agg(g.attempt) into runs, attempts from gone g;
  end if;
  -- What is missing may be in packs.
  if runs is null or cardinality(runs) + coalesce(cardinality(p_taken), 0) < cardinality(p_runs) then
    v_held := ({schema}.lock_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers)).runs;
    with gone as (
      delete from {schema}.lease l where l.shard = p_shard and l.run_id = any (v_held) returning l.run_id, l.attempt
    )
    select runs || array_agg(g.run_id), attempts || array_agg(g.attempt) into runs, attempts from gone g;
  end if;
  if p_taken is not null then
    runs := runs || p_taken;
    attempts := attempts || array_fill(1, array[cardinality(p_taken)]);
  end if;
end
$$;

-- Does it for runs that leave with the packs in which their worker holds them. Those of each pack stand together in p_runs, from the
-- first to the last place. What has a part of it leave only, or is out of the ordinary, gets leases, for take_leases. Answers what has left.
-- Locks: the packs, in id order, before any lease. Index: pack_pkey.
create function {schema}.take_packs_v1(
  p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_servers float8[],
  p_packs uuid[], p_firsts integer[], p_lasts integer[])
returns uuid[]
language plpgsql
as $$
declare
  v_held uuid[];
  v_gone uuid[];
  v_places integer[];
begin
  v_held := array(select k.id from {schema}.pack k
                   where k.shard = p_shard and k.id = any (p_packs) and (k.worker_id = p_worker) is true
                   order by k.id for update);
  if p_epochs[1] = 1 and p_epochs[1] = all (p_epochs) and p_servers = array[{schema}.server_v1()] then
    with gone as (
      delete from {schema}.pack k
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
    perform {schema}.unpack_v1(p_shard, array(select h from unnest(v_held) h where (h = any (v_gone)) is not true));
  end if;
  return (select array_agg(r order by i.first, r.place)
            from unnest(p_packs, p_firsts, p_lasts) i (id, first, last)
           cross join unnest(p_runs[i.first : i.last]) with ordinality r (r, place)
           where i.id = any (v_gone));
end
$$;

-- Inserts facts. Unless p_are_new, one whose seq is there already is left as it is. Answers how many it has inserted.
create function {schema}.insert_events_v1(
  p_shard smallint, p_now timestamptz, p_worker uuid, p_lost uuid[], p_are_new boolean,
  e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms float8[],
  e_delay_ms float8[], e_due_ms float8[], e_data text[], e_notes text[], e_epochs integer[])
returns integer
language plpgsql
as $$
declare
  v_name text := case when cardinality(e_names) = 1 then e_names[1] end;
  v_attempt integer := case when cardinality(e_attempts) = 1 then e_attempts[1] end;
  v_written integer;
begin
  insert into {schema}.event (shard, run_id, seq, at, kind, name, attempt, epoch, began_at, due_at, data, notes, worker_id)
  select p_shard, e.run_id, coalesce(e.seq, e_seqs[1]), p_now, coalesce(e.kind, e_kinds[1]), coalesce(e.name, v_name),
         coalesce(e.attempt, v_attempt), e.epoch, to_timestamp(e.began_ms / 1000.0),
         coalesce(date_trunc('milliseconds', p_now + e.delay_ms * interval '1 millisecond' + interval '999 microseconds'),
                  to_timestamp(e.due_ms / 1000.0)),
         e.data::json, e.notes::json,
         case when coalesce(e.kind, e_kinds[1]) in ('completed', 'failed', 'cancelled', 'timed_out', 'attempt_failed') then p_worker end
    from unnest(e_runs, e_seqs, e_kinds, e_names, e_attempts, e_epochs, e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes)
         e (run_id, seq, kind, name, attempt, epoch, began_ms, delay_ms, due_ms, data, notes)
   where (p_lost is null or e.run_id <> all (p_lost))
     and (p_are_new or not exists (select 1 from {schema}.event h
                                    where h.shard = p_shard and h.run_id = e.run_id and h.seq = coalesce(e.seq, e_seqs[1])
                                   offset 0));
  get diagnostics v_written = row_count;
  return v_written;
end
$$;

-- Appends facts. One whose seq is there already is left as it is: the write is being repeated. Nobody else can be adding it,
-- since the caller has locked the lease; `on conflict` would write a second WAL record for each fact. Of many it is not asked first
-- whether they are there: nearly always all are new, and the index tells if not.
-- p_lost: runs whose lease is gone; nothing is written for them. Of the columns but e_runs, one value says it of all; a column that
-- no fact has is null.
-- e_epochs: of the holder, in facts that complete a run. Answers how many it has appended.
create function {schema}.append_events_v1(
  p_shard smallint, p_now timestamptz, p_worker uuid, p_lost uuid[],
  e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms float8[],
  e_delay_ms float8[], e_due_ms float8[], e_data text[], e_notes text[], e_takes uuid[], e_epochs integer[] default null)
returns integer
language plpgsql
as $$
declare
  v_written integer;
begin
  if cardinality(e_runs) >= 16 then
    begin
      v_written := {schema}.insert_events_v1(p_shard, p_now, p_worker, p_lost, true, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                             e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_epochs);
    exception when unique_violation then
    end;
  end if;
  if v_written is null then
    v_written := {schema}.insert_events_v1(p_shard, p_now, p_worker, p_lost, false, e_runs, e_seqs, e_kinds, e_names, e_attempts,
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
           from {schema}.inbox i
          where i.shard = p_shard and i.run_id = e.run_id and i.id = e.takes and coalesce(i.taken_seq, -1) = -1
            for update) i
       where e.takes is not null and (p_lost is null or e.run_id <> all (p_lost))
    )
    update {schema}.inbox i set taken_seq = t.seq from taken t where i.ctid = t.place;
    if 'update_answered' = any (e_kinds) then
      perform {schema}.answer_updates_v1(p_shard, p_lost, e_runs, e_seqs, e_kinds, e_takes);
    end if;
  end if;
  return v_written;
end
$$;

-- The runs of p_runs that are not in p_held, where null is none; null if all are.
create function {schema}.lost_runs_v1(p_runs uuid[], p_held uuid[])
returns uuid[]
language plpgsql immutable
as $$
begin
  if cardinality(p_runs) = cardinality(p_held) then
    return null;
  end if;
  return array(select r from unnest(p_runs) r except select h from unnest(p_held) h);
end
$$;

-- Appends facts to held runs and creates the children they speak of. Like all functions with facts (e_*) it takes e_runs as p_runs
-- where that is null, one fact for each.
-- Answers the time in a row of its own (run_id null), one row a run that has lost its lease (told null), one a run that was told
-- something, and one a timer set here with its due time.
-- Locks: lease rows, in id order. Index: lease_pkey, event_pkey.
create function {schema}.record_events_v1(
  p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers float8[],
  p_children json, p_written json,
  e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms float8[],
  e_delay_ms float8[], e_due_ms float8[], e_data text[], e_notes text[], e_takes uuid[])
returns table (run_id uuid, told boolean, seq integer, due_ms float8, now_ms float8)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_held {schema}.held := {schema}.lock_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers);
  v_lost uuid[] := {schema}.lost_runs_v1(p_runs, v_held.runs);
  v_now timestamptz := {clock};
begin
  e_runs := coalesce(e_runs, case when e_seqs is not null then p_runs end);
  perform {schema}.append_events_v1(p_shard, v_now, p_worker, v_lost, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                    e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_takes);
  if p_children is not null then
    perform {schema}.put_children_v1(p_shard, v_now, p_children, v_lost);
  end if;
  if p_written is not null then
    perform {schema}.write_streams_v1(p_shard, v_now, p_written, v_lost);
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
         from {schema}.event e
        where e.shard = p_shard and e.run_id = n.run_id and e.seq = coalesce(n.seq, e_seqs[1])
       offset 0) e
     where coalesce(n.kind, e_kinds[1]) = 'timer_set' and (v_lost is null or n.run_id <> all (v_lost));
  end if;
end
$$;

-- Creates the children of held runs; those of runs that lost their lease are left out.
create function {schema}.put_children_v1(p_shard smallint, p_now timestamptz, p_children json, p_lost uuid[])
returns void
language plpgsql
as $$
declare
  v_skip uuid[];
begin
  if p_lost is not null then
    select array_agg(n.id) into v_skip
      from json_to_recordset(p_children) as n (id uuid, parent_id uuid)
     where n.parent_id = any (p_lost);
  end if;
  perform {schema}.put_runs_v1(p_shard, p_now, p_children, v_skip, null, null);
end
$$;

-- Clears told, for the holder sees all that is there. Only at the first try of a look that arrives: one that comes later may
-- be seen by nobody, and what came in between would not be told.
create function {schema}.note_looks_v1(p_shard smallint, p_held uuid[], p_runs uuid[], p_looks integer[])
returns void
language plpgsql
as $$
begin
  with looking as materialized (
    select l.place, i.look
      from unnest(p_runs, p_looks) i (run_id, look)
     cross join lateral (
       select l.ctid as place
         from {schema}.lease l
        where l.shard = p_shard and l.run_id = i.run_id and l.looks < i.look
       offset 0) l
     where i.run_id = any (p_held)
  )
  update {schema}.lease l set told = false, looks = i.look from looking i where l.ctid = i.place;
end
$$;

-- All unread messages of held runs, oldest first, and clears told. Answers a first row (message_id null) for each held run.
-- Locks: lease rows, in id order. Index: lease_pkey, inbox_unread.
create function {schema}.read_inbox_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_looks integer[])
returns table (run_id uuid, message_id uuid, topic text, name text, data text, notes text, sent_ms float8, sent_to uuid)
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
  perform {schema}.note_looks_v1(p_shard, v_held, p_runs, p_looks);

  return query select h, null::uuid, null, null, null, null, null::float8, null::uuid from unnest(v_held) h;
  return query
  select i.run_id, i.id, i.topic, i.name, i.data::text, i.notes::text, floor(extract(epoch from i.sent_at) * 1000)::float8,
         i.sent_to
    from {schema}.inbox i
   where i.shard = p_shard and i.run_id = any (v_held) and i.taken_seq is null
   order by i.sent_at, i.id;
end
$$;

-- Records, then parks what is neither told nor due. The run's row is locked before the inbox is looked at, and by
-- everyone who tells before they look at parked: one of the two sees the other.
-- Answers one row a held run (outcome), one a timer set (seq, due_ms), and with 'told' one an unread message.
-- Locks: run rows, then lease rows, each in id order. Index: run_pkey, lease_pkey, inbox_unread.
create function {schema}.park_runs_v1(
  p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers float8[],
  p_looks integer[], p_last_seqs integer[],
  p_reasons text[], p_due_ms float8[], p_fires text[], p_delay_ms float8[], p_wants text[], p_failed boolean[], p_children json, p_written json,
  e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms float8[],
  e_delay_ms float8[], e_due_ms float8[], e_data text[], e_notes text[], e_takes uuid[])
returns table (run_id uuid, outcome text, told boolean, seq integer, due_ms float8, now_ms float8,
               message_id uuid, topic text, name text, data text, notes text, sent_ms float8, sent_to uuid)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
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
  perform 1 from (select 1 from {schema}.run r
                   where r.shard = p_shard and r.id = any (p_runs)
                   order by r.id for no key update) r;
  v_held := ({schema}.lock_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers)).runs;
  -- An earlier try of a holder that has gone on since is too late: it knows neither the history nor what the run wants.
  v_late := array(
    select i.run_id
      from unnest(p_runs, p_last_seqs) i (run_id, last_seq)
     where exists (select 1 from {schema}.event e
                    where e.shard = p_shard and e.run_id = i.run_id and e.seq > i.last_seq
                   offset 0));
  if v_late <> '{}' then
    v_held := array(select h from unnest(v_held) h except select r from unnest(v_late) r);
  end if;
  v_lost := {schema}.lost_runs_v1(p_runs, v_held);
  v_now := {clock};
  v_now_ms := floor(extract(epoch from v_now) * 1000);

  if e_runs is not null then
    perform {schema}.append_events_v1(p_shard, v_now, p_worker, v_lost, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                                      e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_takes);
  end if;
  if p_children is not null then
    perform {schema}.put_children_v1(p_shard, v_now, p_children, v_lost);
  end if;
  if p_written is not null then
    perform {schema}.write_streams_v1(p_shard, v_now, p_written, v_lost);
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
                       from {schema}.event e
                      where e.shard = p_shard and e.run_id = n.run_id and e.seq = coalesce(n.seq, e_seqs[1])
                     offset 0) e
                   where coalesce(n.kind, e_kinds[1]) = 'timer_set') d
           group by d.run_id) d;

  -- An attempt that has failed is over, and counts: the run parks, and is woken like one that was told afterwards.
  select array_agg(i.run_id) filter (where not i.failed), array_agg(i.run_id) filter (where i.failed) into v_told, v_woken
    from unnest(p_runs, p_wants, p_failed) i (run_id, wants, failed)
   where (v_lost is null or i.run_id <> all (v_lost))
     and exists (select 1 from {schema}.inbox m
                  where m.shard = p_shard and m.run_id = i.run_id and m.taken_seq is null
                    and m.topic = any (i.wants::text[])
                 offset 0);
  if v_told is not null then
    perform {schema}.note_looks_v1(p_shard, v_told, p_runs, p_looks);
  end if;

  with parking as materialized (
    select l.place, i.last_seq, i.reason, i.due_at, i.wants::text[] as wants, i.failed::integer as failed,
           case when i.reason = 'waiting' and i.due_at is not null and (i.said = '') is not true then i.fires end as fires
      from unnest(p_runs, p_epochs, p_last_seqs, p_reasons, v_due, v_fires, p_fires, p_wants, p_failed)
           i (run_id, epoch, last_seq, reason, due_at, fires, said, wants, failed)
     cross join lateral (
       select l.ctid as place
         from {schema}.lease l
        where l.shard = p_shard and l.run_id = i.run_id and l.epoch = i.epoch and (l.worker_id = p_worker) is true
       offset 0) l
     where (v_lost is null or i.run_id <> all (v_lost))
       and (v_told is null or i.run_id <> all (v_told))
       and (i.due_at is null or i.due_at > v_now or i.failed or i.reason in ('paused', 'blocked'))
  ), gone as (
    delete from {schema}.lease l
     using parking i
     where l.ctid = i.place
    returning l.run_id, l.epoch, i.last_seq, l.attempt + i.failed as attempt, l.failures + i.failed as failures,
              i.reason, i.due_at, i.fires, i.wants
  )
  insert into {schema}.parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes,
                               suspicion, reason, wants, fires)
  select p_shard, g.run_id, v_now, g.due_at, g.epoch, g.last_seq, g.attempt, g.failures, 0, 0, g.reason, g.wants, g.fires
    from gone g;
  if v_woken is not null then
    perform {schema}.wake_runs_v1(p_shard, v_now, v_woken);
  end if;

  return query
  select i.run_id,
         case when l.told is null then 'parked' when i.run_id = any (v_told) then 'told' else 'due' end,
         coalesce(l.told, false), null::integer, floor(extract(epoch from i.due_at) * 1000)::float8, v_now_ms,
         null::uuid, null, null, null, null, null::float8, null::uuid
    from unnest(p_runs, v_due) i (run_id, due_at)
    left join lateral (
      select l.told
        from {schema}.lease l
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
         from {schema}.event e
        where e.shard = p_shard and e.run_id = n.run_id and e.seq = coalesce(n.seq, e_seqs[1])
       offset 0) e
     where coalesce(n.kind, e_kinds[1]) = 'timer_set' and (v_lost is null or n.run_id <> all (v_lost));
  end if;
  if v_told is not null then
    return query
    select i.run_id, null, null::boolean, null::integer, null::float8, v_now_ms, i.id, i.topic, i.name, i.data::text, i.notes::text,
           floor(extract(epoch from i.sent_at) * 1000)::float8, i.sent_to
      from {schema}.inbox i
     where i.shard = p_shard and i.run_id = any (v_told) and i.taken_seq is null
     order by i.sent_at, i.id;
  end if;
end
$$;

-- Ends held runs: facts, the parent's message and wake-up, a cancel for the children of what was stopped or failed;
-- p_next: the runs that go on from them, see continue_runs_v1. p_parents: the parents of these runs, or null.
-- p_statuses: null where all have completed. The fact that says so carries the output, and is all that is written for one that has
-- no parent: its lease is what others wait for who want to know whether it lives. p_packs: those in which runs were claimed, see take_packs.
-- Answers the runs that were not ended, for their lease is lost. Fails with 40001 if it must be tried again.
-- Locks: where there are parents, children to be stopped or runs to go on: run rows of these runs and of those, in id order, and, behind
-- the packs, the lease rows of all of them; then those of these runs, each in id order.
-- Index: run_pkey, run_parent, pack_pkey, lease_pkey, event_pkey.
create function {schema}.end_runs_v1(
  p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_known integer[], p_servers float8[],
  p_packs uuid[], p_firsts integer[], p_lasts integer[], p_statuses text[], p_errors text[], p_error_notes text[],
  p_children json, p_written json, p_next json, p_parents uuid[],
  e_runs uuid[], e_seqs integer[], e_kinds text[], e_names text[], e_attempts integer[], e_began_ms float8[],
  e_delay_ms float8[], e_due_ms float8[], e_data text[], e_notes text[], e_takes uuid[], e_epochs integer[])
returns table (run_id uuid)
language plpgsql
set search_path = pg_catalog
set lock_timeout = '250ms'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
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
    v_children := {schema}.stopped_children_v1(p_shard, p_runs, p_statuses);
    v_locked := p_runs || p_parents || v_children;
    perform 1 from (select 1 from {schema}.run r
                     where r.shard = p_shard and r.id = any (v_locked)
                     order by r.id for no key update) r;
  end if;
  if p_packs is not null then
    v_taken := {schema}.take_packs_v1(p_shard, p_worker, p_runs, p_epochs, p_servers, p_packs, p_firsts, p_lasts);
  end if;
  if cardinality(v_locked) > cardinality(p_runs) then
    perform 1 from (select 1 from {schema}.lease l
                     where l.shard = p_shard and l.run_id = any (v_locked)
                     order by l.run_id for update) l;
  end if;
  select t.runs, t.attempts into v_gone, v_attempts
    from {schema}.take_leases_v1(p_shard, p_worker, p_runs, p_epochs, p_known, p_servers, v_taken) t;
  v_lost := {schema}.lost_runs_v1(p_runs, v_gone);
  v_now := {clock};
  -- An earlier write of this holder, its answer lost, may have added children while we waited for the lease.
  if v_children is not null
     and exists (select c from unnest({schema}.stopped_children_v1(p_shard, p_runs, p_statuses)) c
                 except select c from unnest(v_children) c) then
    raise exception 'children were added meanwhile' using errcode = 'serialization_failure';
  end if;

  -- The fact that says how a run ended is its last, also where an earlier write of its holder has the number which that was given.
  if {schema}.append_events_v1(p_shard, v_now, p_worker, v_lost, e_runs, e_seqs, e_kinds, e_names, e_attempts,
                               e_began_ms, e_delay_ms, e_due_ms, e_data, e_notes, e_takes, e_epochs) < cardinality(e_runs) then
    insert into {schema}.event (shard, run_id, seq, at, kind, attempt, epoch, began_at, data, notes, worker_id)
    select p_shard, e.run_id, {schema}.newest_seq_v1(p_shard, e.run_id) + 1, v_now, e.kind, e.attempt, e.epoch,
           to_timestamp(e.began_ms / 1000.0), e.data::json, e.notes::json, case when e.kind <> 'expired' then p_worker end
      from (select e.run_id, coalesce(e.kind, e_kinds[1]) as kind, e.epoch, e.began_ms, e.data, e.notes,
                   case when cardinality(e_attempts) = 1 then e_attempts[1] else e.attempt end as attempt
              from unnest(e_runs, e_kinds, e_attempts, e_epochs, e_began_ms, e_data, e_notes)
                   e (run_id, kind, attempt, epoch, began_ms, data, notes)) e
     where e.kind in ('completed', 'failed', 'cancelled', 'timed_out', 'expired') and e.run_id = any (v_gone)
       and {schema}.end_status_v1(p_shard, e.run_id) is null;
  end if;
  if p_children is not null then
    perform {schema}.put_children_v1(p_shard, v_now, p_children, v_lost);
    v_children := {schema}.stopped_children_v1(p_shard, p_runs, p_statuses);
  end if;
  if p_written is not null then
    perform {schema}.write_streams_v1(p_shard, v_now, p_written, v_lost);
  end if;
  if p_next is not null then
    v_next := {schema}.continue_runs_v1(p_shard, v_now, p_next, v_lost);
  end if;

  -- Most often all are ended, and were found in the order in which they are named.
  if p_statuses is null or v_gone = p_runs then
    v_wake := {schema}.finish_runs_v1(p_shard, v_now, v_gone, p_parents, p_statuses, p_epochs, v_attempts, p_errors, p_error_notes);
  else
    v_wake := (
      select {schema}.finish_runs_v1(p_shard, v_now, array_agg(i.id), p_parents, array_agg(i.status), array_agg(i.epoch),
                                     array_agg(v_attempts[array_position(v_gone, i.id)]), array_agg(i.error),
                                     array_agg(i.error_notes))
        from unnest(p_runs, p_epochs, p_statuses, p_errors, p_error_notes) i (id, epoch, status, error, error_notes)
       where i.id = any (v_gone)
      having count(*) > 0);
  end if;

  if v_children is not null then
    v_wake := v_wake || {schema}.cancel_children_v1(p_shard, v_now, v_children, v_gone);
  end if;
  if v_wake is not null or v_next is not null then
    perform {schema}.wake_runs_v1(p_shard, v_now, v_wake || v_next);
  end if;

  if v_lost is not null then
    foreach run_id in array v_lost loop
      return next;
    end loop;
  end if;
end
$$;

-- The id of the message by which a run that ends asks its child to stop.
create function {schema}.cancel_from_parent_v1(p_child uuid, p_parent uuid)
returns uuid
language plpgsql immutable
as $$
begin
  return (left(p_child::text, 24) || right(p_parent::text, 12))::uuid;
end
$$;

-- Asks live children of these parents to stop. Answers those it told, for the caller to wake. Both may have been redriven:
-- then the message of the earlier life counts once more.
create function {schema}.cancel_children_v1(p_shard smallint, p_now timestamptz, p_children uuid[], p_parents uuid[])
returns uuid[]
language plpgsql
as $$
declare
  v_told uuid[];
begin
  with told as (
    insert into {schema}.inbox (shard, run_id, id, sent_at, topic, data)
    select p_shard, c.id, {schema}.cancel_from_parent_v1(c.id, c.parent_id), p_now, 'cancel', '{"reason":"parent"}'::json
      from {schema}.run c
     where c.shard = p_shard and c.id = any (p_children) and (c.parent_id = any (p_parents)) is true
       and {schema}.end_status_v1(p_shard, c.id) is null
    on conflict (shard, run_id, id) do update set sent_at = excluded.sent_at, taken_seq = null
    returning run_id
  )
  select array_agg(t.run_id) into v_told from told t;
  return v_told;
end
$$;

-- The live children of those of these runs that are being stopped or fail, detached ones left out; null if there is no such run.
create function {schema}.stopped_children_v1(p_shard smallint, p_runs uuid[], p_statuses text[])
returns uuid[]
language plpgsql
as $$
begin
  if (p_statuses && '{cancelled,timed_out,failed}') is not true then
    return null;
  end if;
  return array(
    select c.id
      from unnest(p_runs, p_statuses) i (id, status)
     cross join lateral (
       select c.id
         from {schema}.run c
        where c.shard = p_shard and c.parent_id = i.id and c.detached is not true
       offset 0) c
     where {schema}.end_status_v1(p_shard, c.id) is null and i.status in ('cancelled', 'timed_out', 'failed'));
end
$$;

-- Gives held runs back as they are, and answers those that are not: their lease is lost. told is set, so that nothing said meanwhile is overlooked.
-- p_ready_ms: since when those were ready whose code has not been called. They keep that place, and under their first lease they expire as if nobody had held them.
-- Locks: lease rows, in id order. Index: lease_pkey, ready_pkey, run_pkey.
create function {schema}.release_runs_v1(p_shard smallint, p_worker uuid, p_runs uuid[], p_epochs integer[], p_ready_ms float8[])
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
  perform {schema}.return_leases_v1(p_shard, {clock}, v_held);
  if p_ready_ms is not null then
    with unbegun as materialized (
      select y.place, to_timestamp(i.ready_ms / 1000.0) as ready_at, r.expires_at
        from unnest(p_runs, p_ready_ms) i (run_id, ready_ms)
       cross join lateral (
         select y.ctid as place
           from {schema}.ready y
          where y.shard = p_shard and y.run_id = i.run_id
            for update) y
       cross join lateral (
         select least(r.expires_at, r.deadline_at) as expires_at
           from {schema}.run r
          where r.shard = p_shard and r.id = i.run_id
         offset 0) r
       where i.ready_ms is not null and i.run_id = any (v_held)
    )
    update {schema}.ready y
       set ready_at = u.ready_at, expires_at = case when y.epoch = 1 then u.expires_at end
      from unbegun u
     where y.ctid = u.place;
  end if;
  return query select l from unnest({schema}.lost_runs_v1(p_runs, v_held)) l;
end
$$;

-- Moves locked leases to ready, numbers kept. last_seq is read from the history: the lease knows only that of its claim.
create function {schema}.return_leases_v1(p_shard smallint, p_now timestamptz, p_runs uuid[])
returns void
language plpgsql
as $$
declare
  v_rooms {schema}.room[];
begin
  with gone as (
    delete from {schema}.lease l
     where l.shard = p_shard and l.run_id = any (p_runs)
    returning l.run_id, l.epoch, l.attempt, l.failures, l.crashes, l.suspicion
  )
  select array_agg((g.run_id, g.epoch, {schema}.newest_seq_v1(p_shard, g.run_id), g.attempt, g.failures, g.crashes,
                    g.suspicion, true)::{schema}.room)
    into v_rooms from gone g;
  perform {schema}.put_ready_v1(p_shard, p_now, v_rooms);
end
$$;

-- The number of events in a run's history. Index: event_pkey, backwards.
create function {schema}.newest_seq_v1(p_shard smallint, p_run uuid)
returns integer
language plpgsql stable
as $$
begin
  return coalesce((select e.seq from {schema}.event e
                    where e.shard = p_shard and e.run_id = p_run
                    order by e.seq desc limit 1), 0);
end
$$;
