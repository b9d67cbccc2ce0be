-- What runs show of themselves, and answer: published values, updates, streams.

-- What the value of a request was published under: the name in its key, in whatever scope, without occurrence and escapes.
-- As publishedKey in core/request-key.ts.
create function {schema}.published_key_v1(p_name text)
returns text
language plpgsql immutable
set search_path = pg_catalog
as $$
begin
  return regexp_replace(
    regexp_replace(substr(regexp_replace(p_name, '^(?:(?:\\.|[^\\/])*/)*', ''), 9), '^((?:\\.|[^\\#])*)#[0-9]+$', '\1'),
    '\\(.)', '\1', 'g');
end
$$;

-- Serves: read_published. The newest value of a run under a key, whatever else has happened to it; and, under no key, when
-- it was redriven.
create index event_published on {schema}.event (run_id, ({schema}.published_key_v1(name) collate "C"), seq)
 where kind in ('published', 'redriven');

-- The last value that a run published under this key, or under each, by key, since it last began from its start. Steps from
-- key to key: a run may publish one of them thousands of times. Index: event_published.
create function {schema}.read_published_v1(p_shard smallint, p_run uuid, p_key text)
returns table (key text, name text, data json, notes json, at timestamptz)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_key text := p_key;
  v_start integer := (
    select e.seq from {schema}.event e
     where e.run_id = p_run and e.kind = 'redriven' and {schema}.published_key_v1(e.name) collate "C" is null
       and e.data is not null and (e.shard = p_shard) is true
     order by {schema}.published_key_v1(e.name) collate "C" desc, e.seq desc
     limit 1);
begin
  if p_key is null then
    v_key := (select {schema}.published_key_v1(e.name) from {schema}.event e
               where e.run_id = p_run and e.kind = 'published' and (e.shard = p_shard) is true
               order by {schema}.published_key_v1(e.name) collate "C" limit 1);
  end if;
  while v_key is not null loop
    return query
    select v_key, e.name, e.data, e.notes, e.at
      from {schema}.event e
     where e.run_id = p_run and e.kind = 'published' and {schema}.published_key_v1(e.name) collate "C" = v_key
       and e.seq > coalesce(v_start, 0) and (e.shard = p_shard) is true
     order by {schema}.published_key_v1(e.name) collate "C" desc, e.seq desc
     limit 1;
    exit when p_key is not null;
    v_key := (select {schema}.published_key_v1(e.name) from {schema}.event e
               where e.run_id = p_run and e.kind = 'published' and {schema}.published_key_v1(e.name) collate "C" > v_key
                 and (e.shard = p_shard) is true
               order by {schema}.published_key_v1(e.name) collate "C" limit 1);
  end loop;
end
$$;

-- Public. The last value under each key. Index: event_published, by run.
create view {schema}.published as
select r.id as run_id, p.key, p.data as value, p.notes, p.at, r.shard
  from {schema}.run r
 cross join lateral {schema}.read_published_v1(r.shard, r.id, null) p;

-- Notes which events answer which updates, and says so. A write that is repeated changes nothing. Index: inbox_pkey.
create function {schema}.answer_updates_v1(
  p_shard smallint, p_lost uuid[], e_runs uuid[], e_seqs integer[], e_kinds text[], e_takes uuid[])
returns void
language plpgsql
as $$
declare
  v_runs uuid[];
begin
  with answered as materialized (
    select i.place, e.run_id, coalesce(e.seq, e_seqs[1]) as seq
      from unnest(e_runs, e_seqs, e_kinds, e_takes) e (run_id, seq, kind, takes)
     cross join lateral (
       select i.ctid as place
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = e.run_id and i.id = e.takes and coalesce(i.answer_seq, -1) = -1
          for update) i
     where coalesce(e.kind, e_kinds[1]) = 'update_answered' and e.takes is not null and (p_lost is null or e.run_id <> all (p_lost))
  ), noted as (
    update {schema}.inbox i set answer_seq = a.seq from answered a where i.ctid = a.place returning a.run_id
  )
  select array_agg(distinct n.run_id) into v_runs from noted n;
  perform {schema}.hint_runs_v1('a', v_runs);
end
$$;

-- What has become of updates, each found by its id, or else by its idempotency key: one row for each, in order. Without a
-- topic it is not there; without a seq it is not answered. Index: run_pkey, inbox_pkey, inbox_idempotency, event_pkey.
create function {schema}.read_answers_v1(p_shard smallint, p_runs uuid[], p_ids uuid[], p_keys text[])
returns table (topic text, seq integer, name text, data text, notes text, is_ended boolean)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  select i.topic::text, e.seq::integer, e.name, e.data::text, e.notes::text, r.is_live is null
    from unnest(p_runs, p_ids, p_keys) with ordinality q (run_id, id, key, place)
    left join lateral (
      select true as is_live
        from {schema}.run r
       where r.shard = p_shard and r.id = q.run_id and {schema}.end_status_v1(p_shard, r.id) is null
      offset 0) r on true
    left join lateral (
      select i.topic, i.answer_seq
        from {schema}.inbox i
       where i.shard = p_shard and i.run_id = q.run_id and i.id = q.id
       union all
      select i.topic, i.answer_seq
        from {schema}.inbox i
       where i.shard = p_shard and i.run_id = q.run_id and i.idempotency_key = q.key
       limit 1) i on true
    left join lateral (
      select e.seq, e.name, e.data, e.notes
        from {schema}.event e
       where e.shard = p_shard and e.run_id = q.run_id and e.seq = i.answer_seq
      offset 0) e on true
   order by q.place;
end
$$;

-- Writes to streams what is not there yet, and says so. Nobody else can be adding it, since the caller has locked the lease.
-- Index: stream_pkey.
create function {schema}.write_streams_v1(p_shard smallint, p_now timestamptz, p_written json, p_lost uuid[])
returns void
language plpgsql
as $$
declare
  v_runs uuid[];
begin
  with put as (
    insert into {schema}.stream (shard, run_id, at, name, position, step, attempt, is_first, is_closing, data, notes)
    select p_shard, w.run_id, p_now, w.name, w.position, w.step, w.attempt, coalesce(w.is_first, false),
           coalesce(w.is_closing, false), w.data::json, w.notes::json
      from json_to_recordset(p_written) as w (run_id uuid, name text, position integer, step text, attempt integer,
                                              is_first boolean, is_closing boolean, data text, notes text)
     where (p_lost is null or w.run_id <> all (p_lost))
       and not exists (select 1 from {schema}.stream s
                        where s.shard = p_shard and s.run_id = w.run_id and s.name = w.name and s.position = w.position
                       offset 0)
    returning run_id
  )
  select array_agg(distinct p.run_id) into v_runs from put p;
  perform {schema}.hint_runs_v1('w', v_runs);
end
$$;

-- Takes back that streams of these runs were closed. A closing is the last item of its stream, and what is written next gets
-- its position. Steps from stream to stream, backwards: each may hold thousands of items. Index: stream_pkey.
create function {schema}.reopen_streams_v1(p_shard smallint, p_runs uuid[])
returns void
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_run uuid;
  v_last {schema}.stream;
begin
  foreach v_run in array p_runs loop
    select s.* into v_last
      from {schema}.stream s
     where s.run_id = v_run and (s.shard = p_shard) is true
     order by s.run_id desc, s.name desc, s.position desc
     limit 1;
    while found loop
      if v_last.is_closing then
        delete from {schema}.stream s
         where s.run_id = v_run and s.name = v_last.name and s.position = v_last.position and s.shard = p_shard;
      end if;
      select s.* into v_last
        from {schema}.stream s
       where s.run_id = v_run and s.name < v_last.name and (s.shard = p_shard) is true
       order by s.run_id desc, s.name desc, s.position desc
       limit 1;
    end loop;
  end loop;
end
$$;

-- What follows in a stream, in order: up to some items, and up to some bytes and one item more. A first row without a position
-- says whether the run has ended; no row: there is none. Index: run_pkey, stream_pkey.
create function {schema}.read_stream_v1(p_shard smallint, p_run uuid, p_name text, p_after integer, p_limit integer)
returns table (is_ended boolean, "position" integer, step text, attempt integer, is_first boolean, is_closing boolean,
               data text, notes text, at_ms float8)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
begin
  return query
  select {schema}.end_status_v1(p_shard, r.id) is not null, null::integer, null, null::integer, null::boolean, null::boolean, null, null, null::float8
    from {schema}.run r
   where r.shard = p_shard and r.id = p_run;
  return query
  select null::boolean, s.position, s.step, s.attempt, s.is_first, s.is_closing, s.data::text, s.notes::text,
         floor(extract(epoch from s.at) * 1000)::float8
    from (select s.*, sum(coalesce(octet_length(s.data::text), 0) + coalesce(octet_length(s.notes::text), 0))
                        over (order by s.position rows between unbounded preceding and 1 preceding) as bytes_before
            from (select s.* from {schema}.stream s
                   where s.shard = p_shard and s.run_id = p_run and s.name = p_name and s.position > p_after
                   order by s.run_id, s.name, s.position
                   limit p_limit) s) s
   where (s.bytes_before >= 4000000) is not true
   order by s.position;
end
$$;

-- Whether anything follows in these streams, or their runs have ended or are not there: one row for each, in order.
-- Index: run_pkey, stream_pkey.
create function {schema}.find_written_v1(p_shard smallint, p_runs uuid[], p_names text[], p_after integer[])
returns table (has_news boolean)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  return query
  select not exists (select 1 from {schema}.run r
                      where r.shard = p_shard and r.id = q.run_id and {schema}.end_status_v1(p_shard, r.id) is null
                     offset 0)
         or exists (select 1 from {schema}.stream s
                     where s.shard = p_shard and s.run_id = q.run_id and s.name = q.name and s.position = q.after + 1
                    offset 0)
    from unnest(p_runs, p_names, p_after) with ordinality q (run_id, name, after, place)
   order by q.place;
end
$$;

-- The last position in each of these streams of a run, where there is any. Index: stream_pkey, backwards.
create function {schema}.last_positions_v1(p_shard smallint, p_run uuid, p_names text[])
returns table (name text, "position" integer)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
  select n.name, s.position
    from unnest(p_names) n (name)
   cross join lateral (
     select s.position
       from {schema}.stream s
      where s.shard = p_shard and s.run_id = p_run and s.name = n.name
      order by s.run_id desc, s.name desc, s.position desc
      limit 1) s;
end
$$;

-- Public. What runs have written to their streams. Index: stream_pkey, by run and name.
create view {schema}.streams as
select s.run_id, s.name::text as name, s.position, s.data as value, s.notes, s.step, s.attempt, s.is_first, s.is_closing, s.at,
       s.shard
  from {schema}.stream s;
