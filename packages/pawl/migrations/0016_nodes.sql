-- What graphs show of their nodes.

-- The runs that a run has started, by id. Index: run_parent, run_pkey and the rooms' primary keys.
create function {schema}.read_children_v1(p_shard smallint, p_run uuid, p_after uuid, p_limit integer)
returns table (id uuid, request text, status text, epoch integer, created_at timestamptz, ended_at timestamptz, error json,
               error_notes json)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  return query
  select k.id, k.parent_request, r.status, r.epoch, k.created_at, r.ended_at, r.error, r.error_notes
    from (select k.id, k.parent_request, k.created_at
            from (select k.id, k.parent_request, k.created_at
                    from {schema}.run k
                   where k.parent_id = p_run and (k.shard = p_shard) is true and (p_after is null or k.id > p_after)
                  offset 0) k
           order by k.id
           limit p_limit) k
   cross join lateral (
     select r.status, r.epoch, r.ended_at, r.error, r.error_notes from {schema}.runs r where r.shard = p_shard and r.id = k.id offset 0) r
   order by k.id;
end
$$;

-- The name of the scope that all the others of a request are in, without occurrence and escapes; null: it is in none.
-- As outermostScope in core/request-key.ts.
create function {schema}.outermost_scope_v1(p_name text)
returns text
language plpgsql immutable
set search_path = pg_catalog
as $$
begin
  return regexp_replace(
    regexp_replace(substring(p_name from '^((?:\\.|[^\\/])*)/'), '^((?:\\.|[^\\#])*)#[0-9]+$', '\1'), '\\(.)', '\1', 'g');
end
$$;

-- The nodes of a run's graph, in the order of their definition; none where it has published no graph that can be read. As
-- readNodes in core/graph-state.ts. Index: event_published, run_parent, run_pkey and the rooms' primary keys.
create function {schema}.read_nodes_v1(p_shard smallint, p_run uuid, p_ended boolean)
returns table (place integer, name text, state text, reason text, workflow text, version integer, needs text[], at_least integer,
               is_each boolean, is_optional boolean, child_id uuid, runs integer, began_at timestamptz, ended_at timestamptz)
language plpgsql stable
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_since timestamptz := (
    select p.at from {schema}.read_published_v1(p_shard, p_run, 'graph') p where p.data ->> 'format' = 'pawl.dag/1');
begin
  if v_since is null then
    return;
  end if;
  return query
  with shown as materialized (
    select p.key, p.data, p.at from {schema}.read_published_v1(p_shard, p_run, null) p
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
           {schema}.outermost_scope_v1(k.request) as node,
           -- Without the scope of its node, which has another number when the node is begun anew.
           regexp_replace(k.request, '^(?:\\.|[^\\/])*/', '') as item
      from {schema}.read_children_v1(p_shard, p_run, null, null) k
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
$$;

-- Public. The nodes of a run's graph, one row each. Ask by run_id.
create view {schema}.nodes as
select r.id as run_id, n.place, n.name, n.state, n.reason, n.workflow, n.version, n.needs, n.at_least, n.is_each, n.is_optional,
       n.child_id, n.runs, n.began_at, n.ended_at, r.shard
  from {schema}.run r
 cross join lateral {schema}.read_nodes_v1(
   r.shard, r.id, exists (select 1 from {schema}.endings d where d.shard = r.shard and d.run_id = r.id offset 0)) n;
