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
const timeoutMs = sweep === "all" ? 3_600_000 : 120_000 + 60_000 * Number(sweep);
/** Where a worker dies that keeps so many runs in memory. */
interface Doom {
  readonly at: Boundary;
  readonly nth: number;
  readonly stickyRuns: number;
}

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
    const queue = dooms.entries();
    const work = async (): Promise<void> => {
      for (const [number, doom] of queue) {
        crew.prepare(1);
        const isMet = await useDoomed(scene, await crew.next(), successor, `lane-${number}`, doom);
        if (isMet) met.push(doom);
      }
    };
    const began = performance.now();
    await Promise.all(Array.from({ length: lanes }, work));
    console.info(
      `boundaries: seed ${scene.seed}, ${dooms.length} kills planned, ${met.length} met their boundary,`,
      `${new Set(met.map(({ at }) => at)).size} boundaries, ${Math.round(performance.now() - began)} ms`,
    );
    await expectOrder(scene);
    expect(new Set(met.map(({ at }) => at))).toEqual(new Set(dooms.map(({ at }) => at)));
    // How often the last boundaries are passed depends on the moment.
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

/** Answers whether the worker died at its boundary; then the successor went on. */
async function useDoomed(
  scene: Scene,
  worker: WorkerProcess,
  successor: WorkerProcess,
  queue: string,
  doom: Doom,
): Promise<boolean> {
  const signal = AbortSignal.timeout(45_000);
  const late = new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(new Error("it takes too long"))),
  );
  try {
    worker.tell({ kind: "probe", queue, stickyRuns: doom.stickyRuns, doom });
    const used = useEverything(scene.pawl, queue).then(() => allEnded(scene, queue));
    const died = worker.exited().then(() => "died" as const);
    const first = await Promise.race([used, died, late]);
    const isMet = first === "died";
    if (isMet) {
      successor.tell({ kind: "probe", queue, stickyRuns: 1_000, doom: null });
      await Promise.race([used, late]);
    } else await worker.kill();
    return isMet;
  } catch (error) {
    const where = `killed at ${doom.at} number ${doom.nth}, ${doom.stickyRuns} sticky runs, ${queue}`;
    throw new Error(`${where}: ${String(error)}\n${await reportOn(scene)}`, { cause: error });
  }
}
