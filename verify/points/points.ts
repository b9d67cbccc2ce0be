import { fork } from "node:child_process";
import { bundle } from "../bundle.ts";
import { crashPoints } from "../sim/plan.ts";
import { provesNothing, type Stage, type StageFailure, type StageReport, type StageTask } from "../stage.ts";
import { parseCase, runBaseline, runCase } from "./case.ts";
import type { ShareReport, ShareTask } from "./share.ts";

/** CI has two cores. */
const shares = 2;

/** What workers and clients ask of the store, without what only readers ask. */
const expectedCalls: readonly string[] = [
  "registerWorker",
  "claimRuns",
  "record",
  "readInbox",
  "park",
  "end",
  "release",
  "tell",
  "wakeDue",
  "heartbeat",
  "retireWorker",
  "sweep",
  "loadHistory",
].map((call) => `worker ${call}`);

/**
 * One thing goes wrong in each schedule: at every passing of every named point and at every call of the store, one after
 * the other, in fixed programs that together do everything. Takes the time it needs.
 */
export const points: Stage = {
  name: "points",
  takesItsTime: true,
  run: (task) => (task.isRepeat ? repeat(task.seed) : tryAll(task)),
};

/** The same at a few places of each of many programs. */
export const somePoints: Stage = {
  name: "some-points",
  run: (task) => (task.isRepeat ? repeat(task.seed) : trySome(task)),
};

async function repeat(seed: string): Promise<StageReport> {
  const one = parseCase(seed);
  const violations = one === null ? (await runBaseline(seed)).violations : await runCase(one);
  return { landed: new Map(), figures: [], failures: violations.length === 0 ? [] : [{ violations, seed }] };
}

async function tryAll(task: StageTask): Promise<StageReport> {
  const report = await share(task, "all");
  const expected = [...crashPoints.map((point) => `point ${point}`), ...expectedCalls];
  const missing = expected.filter((place) => !report.landed.has(place));
  if (report.failures.length > 0 || missing.length === 0) return report;
  return { ...report, failures: [provesNothing(`Nobody came by ${missing.join(", ")}.`)] };
}

async function trySome(task: StageTask): Promise<StageReport> {
  const report = await share(task, "sample");
  if (report.failures.length > 0 || report.landed.size > 0) return report;
  return { ...report, failures: [provesNothing("There was no time for a single case.")] };
}

async function share({ seed, seconds }: StageTask, mode: ShareTask["mode"]): Promise<StageReport> {
  const main = await bundle(new URL("share-main.ts", import.meta.url));
  try {
    const began = performance.now();
    const tasks = Array.from({ length: shares }, (_, share) => ({ seed, mode, seconds, share, shares }));
    const reports = await Promise.all(tasks.map((task) => forkShare(main.path, task)));
    return summarise(reports, (performance.now() - began) / 1_000);
  } finally {
    await main.remove();
  }
}

function forkShare(path: string, task: ShareTask): Promise<ShareReport> {
  return new Promise((resolve, reject) => {
    const child = fork(path, { execArgv: ["--max-semi-space-size=64"] });
    child.on("message", (report) => resolve(report as ShareReport));
    child.on("exit", (code) => reject(new Error(`A share of the cases ended with ${code} and no report.`)));
    child.send(task);
  });
}

function summarise(reports: readonly ShareReport[], seconds: number): StageReport {
  const landed = new Map<string, number>();
  for (const { places } of reports)
    for (const [place, times] of places) landed.set(place, (landed.get(place) ?? 0) + times);
  const cases = reports.reduce((sum, report) => sum + report.cases, 0);
  const programs = Math.max(...reports.map((report) => report.programs));
  const failures: StageFailure[] = reports.flatMap(({ failure }) => failure ?? []);
  return {
    landed,
    figures: [
      `${cases} schedules with one fault each, at ${landed.size} places, in ${programs} programs or more, ${(cases / seconds).toFixed(0)} a second.`,
    ],
    failures,
  };
}
