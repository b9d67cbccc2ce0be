import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import type { Contestant, Product } from "./contestant.ts";
import type { Ground } from "./ground.ts";
import { median } from "./median.ts";
import { has, oneReading, type Size, type Workload } from "./workload.ts";

/** How the second of two databases differs from the first, which is empty. Answers how to end that. */
type Burden = (url: string, size: Size) => Promise<() => Promise<void>>;

/** So many drains of each database, in turns: the median of the ratios counts. */
const fewestTurns = 5;

/** What is left of the rate of a drain where others have left something: two databases of one server, in turns. */
export function backlogWorkloads(size: Size): readonly Workload[] {
  const runs = size.backlog.toLocaleString("en");
  return [
    burdened(
      `W5: a drain beside ${runs} pending, parked and finished runs, of the rate without`,
      size,
      layRuns,
    ),
    burdened(
      `W5: a drain behind ${size.unknown.toLocaleString("en")} runs of unknown workflows, of the rate without`,
      size,
      layUnknown,
    ),
    burdened(
      `W5: a drain while a snapshot is held for ${size.heldMs / 1_000} s, of the rate without`,
      size,
      holdSnapshot,
      size.heldMs,
    ),
  ];
}

function burdened(name: string, size: Size, burden: Burden, leastMs = 0): Workload {
  return oneReading({
    name,
    unit: "of 1",
    isFor: has("drain"),
    async measure(product, ground) {
      await using pair = await openPair(ground, product);
      const count = size.drained;
      for (const contestant of pair.contestants) await contestant.call("drain", count);
      const relieve = await burden(pair.urls[1], size);
      const beganAt = performance.now();
      const ratios: number[] = [];
      while (ratios.length < fewestTurns || performance.now() - beganAt < leastMs) {
        const order = ratios.length % 2 === 0 ? [0, 1] : [1, 0];
        const ms = [0, 0];
        for (const which of order) ms[which] = (await pair.contestants[which]!.call("drain", count)).answer;
        ratios.push(ms[0]! / ms[1]!);
      }
      await relieve();
      return { value: median(ratios), nodeMs: null, postgresMs: null };
    },
  });
}

interface Pair extends AsyncDisposable {
  readonly urls: readonly [string, string];
  readonly contestants: readonly Contestant[];
}

async function openPair(ground: Ground, product: Product): Promise<Pair> {
  const databases = [await ground.openDatabase(), await ground.openDatabase()] as const;
  const contestants: Contestant[] = [];
  for (const { url } of databases) {
    const contestant = await product.start(url);
    contestants.push(contestant);
    await contestant.call("migrate");
  }
  return {
    urls: [databases[0].url, databases[1].url],
    contestants,
    async [Symbol.asyncDispose]() {
      for (const contestant of contestants) await contestant.close();
      for (const database of databases) await database.drop();
    },
  };
}

/** A third of them waits on a queue that nobody works on, a third is due tomorrow, and a third is done. */
const layRuns: Burden = async (url, { backlog }) => {
  const each = Math.ceil(backlog / 3);
  await withClient(url, async (client) => {
    await start(client, each, { queue: "elsewhere", workflow: "other" });
    await start(client, each, { queue: "elsewhere", workflow: "later", start_ms: Date.now() + 86_400_000 });
    await start(client, each, { queue: "done", workflow: "plain" });
    await client.query(`
      with done as (delete from pawl.ready where queue = 'done' returning run_id)
      insert into pawl.event (shard, run_id, seq, at, kind, attempt) select 0, run_id, 1, now(), 'completed', 1 from done`);
    await client.query("vacuum analyze");
  });
  return async () => {};
};

const layUnknown: Burden = async (url, { unknown }) => {
  await withClient(url, (client) => start(client, unknown, { queue: "default", workflow: "unknown" }));
  return async () => {};
};

const holdSnapshot: Burden = async (url) => {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select count(*) from pawl.run");
  return async () => {
    await client.query("commit");
    await client.end();
  };
};

/** In the database, as a bulk start does. */
async function start(
  client: pg.Client,
  count: number,
  terms: Readonly<Record<string, unknown>>,
): Promise<void> {
  const perCall = 10_000;
  for (let done = 0; done < count; done += perCall) {
    await client.query(
      `select pawl.create_runs_v1(0::smallint, (
         select json_agg($1::jsonb || jsonb_build_object('id', gen_random_uuid(), 'version', 1, 'priority', 0, 'input', '{"order":1}'))
           from generate_series(1, $2)), false, true, null, null, null, null, null, null, null, null, null, null, null)`,
      [JSON.stringify(terms), Math.min(perCall, count - done)],
    );
  }
}

async function withClient(url: string, act: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await act(client);
  await client.end();
  // What the server does about so many rows is not what is measured.
  await pause(2_000);
}
