import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Crew } from "./crew.ts";
import { allEnded, useEverything } from "./everything-client.ts";
import { expectOrder } from "./invariants.ts";
import type { Boundary } from "./messages.ts";
import { reportOn } from "./scene-report.ts";
import { type Scene, test } from "./scene.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** `PAWL_CRASH_SWEEP=all` kills at every passing of every boundary; a number, at so many of each. */
const sweep = process.env["PAWL_CRASH_SWEEP"] ?? "1";
/** `PAWL_CRASH_AT=history.loaded` kills there alone. */
const only = process.env["PAWL_CRASH_AT"] ?? null;
const timeoutMs = sweep === "all" ? 3_600_000 : 300_000 + 100_000 * Number(sweep);
/** Where a worker dies that keeps so many runs in memory. */
interface Doom {
  readonly at: Boundary;
  readonly nth: number;
  readonly stickyRuns: number;
}

/** After so many of the deaths the next worker dies too, soon after it has taken over. */
const shareOfSeconds = 0.3;
/**
 * Who stands still for so long is stuck. A busy machine loses leases of its own, which count as deaths: after six of them a
 * run is tried alone for 128 s, in which its children have to wait.
 */
const stuckMs = 150_000;
/** So many at a time. */
const lanes = 6;

describe("a workflow of everything", { timeout: timeoutMs }, () => {
  test("ends the same wherever its worker is killed, and whoever goes on", async ({ scene }) => {
    const crew = scene.crew();
    crew.prepare(lanes + 1);
    const successor = await crew.next();
    const dooms: Doom[] = [];
    for (const stickyRuns of [1_000, 0])
      dooms.push(...chooseDooms(scene, await countPassings(scene, crew, stickyRuns), stickyRuns));
    const met: Doom[] = [];
    let seconds = 0;
    let scenes = 0;
    const sendAll = async (sent: readonly Doom[]): Promise<void> => {
      const queue = sent.values();
      const work = async (): Promise<void> => {
        for (const doom of queue) {
          const second = scene.random.next() < shareOfSeconds ? [chooseSecond(scene, dooms)] : [];
          const deaths = await useDoomed(scene, crew, successor, `lane-${scenes++}`, [doom, ...second]);
          if (deaths.includes(doom)) met.push(doom);
          if (deaths.length > 1) seconds += 1;
        }
      };
      await Promise.all(Array.from({ length: lanes }, work));
    };
    const began = performance.now();
    await sendAll(dooms);
    // How often a boundary is passed depends on the moment: who waited in vain for a late passing waits for the first.
    const missed = dooms.filter((doom) => met.every(({ at }) => at !== doom.at));
    await sendAll(missed.map((doom) => ({ ...doom, nth: 1 })));
    console.info(
      `boundaries: seed ${scene.seed}, ${dooms.length} kills planned, ${met.length} met their boundary, ${seconds} successors killed too,`,
      `${new Set(met.map(({ at }) => at)).size} boundaries, ${Math.round(performance.now() - began)} ms`,
    );
    await expectOrder(scene);
    expect(new Set(met.map(({ at }) => at))).toEqual(new Set(dooms.map(({ at }) => at)));
    expect(met.length).toBeGreaterThanOrEqual(0.8 * dooms.length);
  });
});

/** How often a run passes each boundary if nobody dies. */
async function countPassings(
  scene: Scene,
  crew: Crew,
  stickyRuns: number,
): Promise<ReadonlyMap<Boundary, number>> {
  const queue = `undisturbed-${stickyRuns}`;
  crew.prepare(1);
  const worker = await crew.next();
  worker.tell({ kind: "probe", queue, stickyRuns, doom: null });
  await useEverything(scene.pawl, queue);
  await allEnded(scene, queue);
  const counted = worker.hear("counted");
  worker.tell({ kind: "count" });
  const { passed } = await counted;
  await worker.kill();
  console.info(`boundaries: ${stickyRuns} sticky runs, passed ${JSON.stringify(Object.fromEntries(passed))}`);
  return new Map(passed);
}

/** Which of the times that a boundary is passed: chance decides. */
function chooseDooms(
  { random }: Scene,
  passings: ReadonlyMap<Boundary, number>,
  stickyRuns: number,
): readonly Doom[] {
  const dooms: Doom[] = [];
  for (const [at, times] of passings) {
    if (at !== (only ?? at)) continue;
    const all = Array.from({ length: times }, (_, index) => index + 1);
    const wanted = sweep === "all" ? times : Math.min(times, Number(sweep));
    while (all.length > wanted) all.splice(Math.floor(random.next() * all.length), 1);
    dooms.push(...all.map((nth) => ({ at, nth, stickyRuns })));
  }
  return dooms;
}

/** Where the worker that takes over dies in its turn. */
function chooseSecond({ random }: Scene, dooms: readonly Doom[]): Doom {
  const { at, stickyRuns } = dooms[Math.floor(random.next() * dooms.length)]!;
  return { at, stickyRuns, nth: 1 + Math.floor(random.next() * 4) };
}

/** Lets workers die one after the other, each at its boundary, until the last one goes on. Answers the dooms that were met. */
async function useDoomed(
  scene: Scene,
  crew: Crew,
  successor: WorkerProcess,
  queue: string,
  dooms: readonly Doom[],
): Promise<readonly Doom[]> {
  const over = new AbortController();
  const stuck = standsStill(scene, queue, over.signal).then(() => "stuck" as const);
  stuck.catch(() => {});
  const met: Doom[] = [];
  try {
    const used = useEverything(scene.pawl, queue)
      .then(() => allEnded(scene, queue))
      .then(() => "used" as const);
    used.catch(() => {});
    let end: "used" | "died" | "stuck" = "died";
    for (const doom of dooms) {
      if (end !== "died") break;
      crew.prepare(1);
      const worker = await crew.next();
      worker.tell({ kind: "probe", queue, stickyRuns: doom.stickyRuns, doom });
      end = await Promise.race([used, worker.exited().then(() => "died" as const), stuck]);
      if (end === "died") met.push(doom);
      else await worker.kill();
    }
    if (end === "died") {
      successor.tell({ kind: "probe", queue, stickyRuns: 1_000, doom: null });
      end = await Promise.race([used, stuck]);
      successor.tell({ kind: "leave", queue });
    }
    if (end === "stuck") throw new Error(`nothing has happened for ${stuckMs} ms`);
    return met;
  } catch (error) {
    const where = `${queue}, killed at ${JSON.stringify(met)}`;
    throw new Error(`${where}: ${String(error)}\n${await reportOn(scene)}`, { cause: error });
  } finally {
    over.abort();
  }
}

/** Resolves once nothing has been added to the histories of the queue's runs for too long; rejects when it is `over`. */
async function standsStill({ pool, schema }: Scene, queue: string, over: AbortSignal): Promise<void> {
  let facts = 0;
  let since = performance.now();
  while (performance.now() - since < stuckMs) {
    await pause(2_000, null, { ref: false, signal: over });
    const { rows } = await pool.query<{ facts: number }>(
      `select coalesce(sum(h.facts), 0)::int as facts
         from ${schema}.run r
        cross join lateral (select count(*) as facts from ${schema}.event e where e.shard = r.shard and e.run_id = r.id) h
        where r.queue = $1`,
      [queue],
    );
    if (rows[0]!.facts === facts) continue;
    facts = rows[0]!.facts;
    since = performance.now();
  }
}
