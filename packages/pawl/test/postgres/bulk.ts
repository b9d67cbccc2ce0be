import type pg from "pg";
import { bindSchema, type SchemaName } from "../../src/postgres/schema-name.ts";

/** How many rows of each kind fill the tables. */
export interface Bulk {
  /** Ended, each with an event, a tag and a key; one in ten has failed. */
  readonly finished: number;
  /** Waiting for a signal until a distant day, each with a message it has taken. */
  readonly parked: number;
  /** At the head of the queue, of a workflow that no worker knows; one half of them in packs. */
  readonly unclaimable: number;
  /** Held by a worker that lives. */
  readonly held: number;
}

/** An id of version 7 and shard 0 that grows with `n`, older than any id made now. */
const id = (n: string): string =>
  `(lpad(to_hex(1600000000000 + ${n}), 12, '0') || '70008000' || lpad(to_hex(${n}), 12, '0'))::uuid`;

/** A second for each run, the newest now. */
const instant = (n: string, newest: number): string => `now() - (${newest} - ${n}) * interval '1 second'`;

const packSize = 50;

/** The number of the last run in the pack of the n-th, where packs are made of those behind `from` up to `to`. */
const lastOfPack = (from: number, to: number): string =>
  `least(${from} + ((n - ${from} - 1) / ${packSize} + 1) * ${packSize}, ${to})`;

const stranger = "00000000-0000-7000-8000-000000000001";

/** Fills the tables with runs that no measured call has anything to do with. Analyses nothing. */
export async function fillTables(pool: pg.Pool, schema: SchemaName, bulk: Bulk): Promise<void> {
  const parkedFrom = bulk.finished;
  const readyFrom = parkedFrom + bulk.parked;
  const packedFrom = readyFrom + Math.floor(bulk.unclaimable / 2);
  const heldFrom = readyFrom + bulk.unclaimable;
  const end = heldFrom + bulk.held;
  const series = (from: number, to: number): string => `generate_series(${from + 1}, ${to}) n`;
  const statements = [
    `insert into {schema}.worker (id, started_at, heard_at, lease_ms, pid, concurrency, host, queues)
     values ('${stranger}', now(), now(), 86400000, 1, 1000, 'elsewhere', '{default}')`,
    `insert into {schema}.worker (id, started_at, heard_at, ended_at, swept_at, lease_ms, pid, concurrency, host, queues)
     select ${id("n")}, now(), now(), now(), now(), 15000, 1, 100, 'gone', '{default}' from ${series(0, 200)}`,
    `insert into {schema}.run (id, created_at, version, priority, depth, shard, workflow, queue, key, input)
     select ${id("n")}, ${instant("n", end)}, 1, 0, 0, 0, 'checkout', 'default', 'old:' || n, '{"orderId":1}'
       from ${series(0, bulk.finished)}`,
    `insert into {schema}.stopped (shard, run_id, ended_at, epoch, attempt, status, error_code, error)
     select 0, ${id("n")}, ${instant("n", end)}, 1, 1, 'failed', 'OLD', '{"code":"OLD"}' from ${series(0, bulk.finished)} where n % 10 = 0`,
    `insert into {schema}.tag (shard, run_id, tag) select 0, ${id("n")}, 'old' from ${series(0, bulk.finished)}`,
    `insert into {schema}.key (shard, key, run_id, workflow, version)
     select 0, 'old:' || n, ${id("n")}, 'checkout', 1 from ${series(0, bulk.finished)}`,
    `insert into {schema}.event (shard, run_id, seq, at, kind, name)
     select 0, ${id("n")}, 1, ${instant("n", bulk.finished)}, 'published', 'publish:stage' from ${series(0, bulk.finished)} where n % 10 = 0`,
    `insert into {schema}.event (shard, run_id, seq, at, kind, attempt, data)
     select 0, ${id("n")}, case when n % 10 = 0 then 2 else 1 end, ${instant("n", bulk.finished)}, case when n % 10 = 0 then 'failed' else 'completed' end, 1, '{"ok":true}' from ${series(0, bulk.finished)}`,
    `insert into {schema}.stream (shard, run_id, at, name, position, is_first, is_closing)
     select 0, ${id("n")}, now(), 'tokens', 1, false, false from ${series(0, bulk.finished)} where n % 10 = 0`,
    `insert into {schema}.run (id, created_at, version, priority, depth, shard, workflow, queue, pack_id, input)
     select ${id("n")}, ${instant("n", end)}, 1, 0, 0, 0, case when n <= ${readyFrom} then 'checkout' else 'unknown' end, 'default',
            case when n > ${packedFrom} and n <= ${heldFrom} then ${id(lastOfPack(packedFrom, heldFrom))} end, '{"orderId":1}'
       from ${series(parkedFrom, end)}`,
    `insert into {schema}.parked (shard, run_id, parked_at, due_at, epoch, last_seq, attempt, failures, crashes, suspicion, reason, wants)
     select 0, ${id("n")}, now(), now() + interval '30 days', 1, 0, 1, 0, 0, 0, 'waiting', '{signal:shipped,cancel}'
       from ${series(parkedFrom, readyFrom)}`,
    `insert into {schema}.inbox (shard, run_id, id, sent_at, taken_seq, topic)
     select 0, ${id("n")}, ${id("n")}, now(), 1, 'signal:paid' from ${series(parkedFrom, readyFrom)}`,
    `insert into {schema}.ready (shard, run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes, suspicion, told, queue, workflow)
     select 0, ${id("n")}, '2026-01-01', 0, 0, 1, -1, 1, 0, 0, 0, false, 'default', 'unknown' from ${series(readyFrom, packedFrom)}`,
    `insert into {schema}.pack (shard, id, ready_at, priority, version, queue, workflow, run_ids)
     select 0, ${id("last")}, '2026-01-01', -1, 1, 'default', 'unknown', array_agg(${id("n")} order by n)
       from (select n, ${lastOfPack(packedFrom, heldFrom)} as last from ${series(packedFrom, heldFrom)}) packed group by last`,
    `insert into {schema}.lease (shard, run_id, worker_id, claimed_at, began_at, epoch, last_seq, attempt, failures, crashes, suspicion, crash_limit, told)
     select 0, ${id("n")}, '${stranger}', now(), now(), 1, 0, 1, 0, 0, 0, 3, false from ${series(heldFrom, end)}`,
  ];
  await Promise.all(statements.map((statement) => pool.query(bindSchema(statement, schema, ""))));
}
