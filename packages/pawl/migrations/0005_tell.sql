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

-- Makes parked runs whose time has come claimable, earliest first. An empty look takes no transaction id.
-- Locks: parked rows, skipping those that others hold. Index: parked_due, run_pkey.
create function {schema}.wake_due_v1(p_shard smallint, p_limit integer)
returns table (woken integer, next_due_ms float8, now_ms float8)
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
  v_due uuid[];
  v_woken integer := 0;
  v_rooms {schema}.room[];
begin
  select p.due_at into v_next from {schema}.parked p
   where p.shard = p_shard and p.due_at is not null
   order by p.due_at limit 1;

  if v_next <= v_now then
    -- Two statements: a message that was stored while the rows were being locked is seen by the second.
    v_due := array(select p.run_id from {schema}.parked p
                    where p.shard = p_shard and p.due_at <= v_now
                    order by p.due_at
                    limit p_limit
                      for update skip locked);
    with gone as (
      delete from {schema}.parked p
       where p.shard = p_shard and p.run_id = any (v_due)
      returning p.run_id, p.epoch, p.last_seq, p.attempt, p.failures, p.crashes, p.suspicion
    )
    select count(*), array_agg((g.run_id, g.epoch, g.last_seq, g.attempt, g.failures, g.crashes, g.suspicion,
             exists (select 1 from {schema}.inbox i
                      where i.shard = p_shard and i.run_id = g.run_id and i.taken_seq is null offset 0))::{schema}.room)
      into v_woken, v_rooms from gone g;
    perform {schema}.put_ready_v1(p_shard, v_now, v_rooms);

    select p.due_at into v_next from {schema}.parked p
     where p.shard = p_shard and p.due_at is not null
     order by p.due_at limit 1;
  end if;

  return query select v_woken, floor(extract(epoch from v_next) * 1000)::float8, floor(extract(epoch from v_now) * 1000)::float8;
end
$$;
