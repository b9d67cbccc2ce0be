-- What runs show of themselves: published values.

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
