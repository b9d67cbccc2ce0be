-- What runs show of themselves, and answer: published values, updates.

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

-- Serves: read_published. The newest value of a run under a key, whatever else has happened to it.
create index event_published on {schema}.event (run_id, ({schema}.published_key_v1(name) collate "C"), seq)
 where kind = 'published';

-- The last value that a run published under this key, or under each, by key. Steps from key to key: a run may publish one of
-- them thousands of times. Index: event_published.
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
       and (e.shard = p_shard) is true
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
    select i.place, e.run_id, e.seq
      from unnest(e_runs, e_seqs, e_kinds, e_takes) e (run_id, seq, kind, takes)
     cross join lateral (
       select i.ctid as place
         from {schema}.inbox i
        where i.shard = p_shard and i.run_id = e.run_id and i.id = e.takes and coalesce(i.answer_seq, -1) = -1
          for update) i
     where e.kind = 'update_answered' and e.takes is not null and (p_lost is null or e.run_id <> all (p_lost))
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
  select i.topic::text, e.seq, e.name, e.data::text, e.notes::text, r.is_live is null
    from unnest(p_runs, p_ids, p_keys) with ordinality q (run_id, id, key, place)
    left join lateral (
      select true as is_live
        from {schema}.run r
       where r.shard = p_shard and r.id = q.run_id and r.status is null
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
