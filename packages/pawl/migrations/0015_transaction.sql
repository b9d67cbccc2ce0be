-- ctx.transaction: a step's record commits together with what its function wrote, in the user's own transaction.

-- The first statement of such a transaction. Marks it, so that record_in_transaction knows it again: a function that ends the
-- transaction by itself would have its record committed apart from what it wrote. Answers 'open', or 'lost' for a run that is
-- not held so. p_idle: how long the session may idle between the function's own statements, unless it may less already.
-- Locks: nothing. Index: lease_pkey, run_pkey, pack_pkey.
create function {schema}.open_transaction_v1(
  p_token text, p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_idle interval)
returns text
language plpgsql
set search_path = pg_catalog
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  perform set_config('pawl.transaction', p_token, true);
  perform {schema}.limit_idling_v1(p_idle);
  return case when exists (select 1 from {schema}.lease l
                            where l.shard = p_shard and l.run_id = p_run and l.epoch = p_epoch
                              and (l.worker_id = p_worker) is true)
                or p_epoch = 1 and {schema}.packs_of_v1(p_shard, array[p_run], p_worker) <> '{}'
              then 'open' else 'lost' end;
end
$$;

-- Until the transaction ends, its session may idle for so long at most; null: as long as it may already.
create function {schema}.limit_idling_v1(p_idle interval)
returns void
language plpgsql
as $$
declare
  v_idle interval := current_setting('idle_in_transaction_session_timeout')::interval;
begin
  if p_idle is not null and (v_idle = interval '0' or v_idle > p_idle) then
    perform set_config('idle_in_transaction_session_timeout', (extract(epoch from p_idle) * 1000)::integer::text, true);
  end if;
end
$$;

-- The last statement before COMMIT: appends one fact, under the fence, and before it the patches that it is the first to follow
-- (p_patches: their ids, as a JSON list; null: there are none): p_seq is the fact's own. Answers, as one text, {"told", "now_ms"}, or
-- 'lost':    the lease is gone;
-- 'late':    the history has gone on: this transaction was given up before;
-- 'outside': this is not the transaction that was opened.
-- From here on the lease is locked: a process that is stopped before its COMMIT keeps others waiting for 5 s at most.
-- Locks: the lease row. Index: lease_pkey, event_pkey.
create function {schema}.record_in_transaction_v1(
  p_token text, p_shard smallint, p_worker uuid, p_run uuid, p_epoch integer, p_seq integer, p_patches json, p_kind text,
  p_name text, p_attempt integer, p_began_ms float8, p_data text, p_notes text)
returns text
language plpgsql
set search_path = pg_catalog
set lock_timeout = '5s'
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  v_newest integer;
  v_now timestamptz;
  v_patches text[];
  v_first integer;
begin
  if current_setting('pawl.transaction', true) is distinct from p_token then
    return 'outside';
  end if;
  perform {schema}.limit_idling_v1(interval '5 seconds');
  if cardinality(({schema}.lock_leases_v1(p_shard, p_worker, array[p_run], array[p_epoch])).runs) = 0 then
    return 'lost';
  end if;
  v_patches := array(select json_array_elements_text(p_patches));
  v_first := p_seq - cardinality(v_patches);
  v_newest := {schema}.newest_seq_v1(p_shard, p_run);
  if v_newest >= v_first then
    return 'late';
  end if;
  -- As in lock_leases. A transaction that sees what was there at its begin cannot tell.
  if v_newest < v_first - 1 and current_setting('transaction_isolation') = 'read committed' then
    return 'lost';
  end if;
  v_now := {clock};
  for place in 1 .. cardinality(v_patches) loop
    perform {schema}.append_events_v1(p_shard, v_now, p_worker, null, array[p_run], array[v_first + place - 1], array['patched'],
                                      array[v_patches[place]], null, null, null, null, null, null, null);
  end loop;
  perform {schema}.append_events_v1(p_shard, v_now, p_worker, null, array[p_run], array[p_seq], array[p_kind], array[p_name],
                                    array[p_attempt], array[p_began_ms], null, null, array[p_data], array[p_notes], null);
  return (select json_build_object('told', l.told, 'now_ms', floor(extract(epoch from v_now) * 1000))::text
            from {schema}.lease l
           where l.shard = p_shard and l.run_id = p_run);
end
$$;
