import { randomUUID } from "node:crypto";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { PrivateServer } from "pawl-test-support/private-server";
import { pgbouncer } from "../../packages/pawl/test/postgres/pgbouncer.ts";
import { bundle } from "../bundle.ts";
import { count, type Tally } from "../sim/tally.ts";
import { provesNothing, type Stage, type StageFailure, type StageReport, type StageTask } from "../stage.ts";
import { auditSettings } from "./audit.ts";
import { runRound, type RoundReport } from "./round.ts";

/** Each must have taken effect, given enough time. */
const faults = [
  "kill -9 of a worker that held runs",
  "zombie whose runs were taken over",
  "restart during take-over",
  "lost COMMIT reply",
  "lost claim reply",
  "cut before a statement",
  "cut inside a transaction",
  "backend terminated",
  "statement timed out (57014)",
  "too many connections (53300)",
  "half-open connection given up",
  "claim behind a wrong clock",
  "user's transaction left open",
  ...(pgbouncer === undefined ? [] : ["claim through PgBouncer"]),
];
const enoughSeconds = 20;
const memory = "/dev/shm";
const leastFreeBytes = 2 * 1024 ** 3;
const leastAnswered = 0.9;
/** Beside its faults a round takes about so long: to begin, to drain, and to check. */
const overheadSeconds = 11;

/** How a round is run; it follows from its seed, so that one can be repeated. */
interface Shape {
  readonly leaseMs: number;
  readonly faultSeconds: number;
  readonly workers: number;
  readonly density: number;
}

const short: Omit<Shape, "faultSeconds"> = { leaseMs: 1_000, workers: 3, density: 1 };
/** Where something has not taken effect yet, so many more rounds are run like this. */
const another: Shape = { ...short, faultSeconds: 12 };
const mostMore = 2;
const long: Shape = { leaseMs: 500, faultSeconds: 90, workers: 6, density: 1 };

/** Real workers on a real Postgres, and faults of all kinds at once. */
export const compound: Stage = { name: "compound", run: runCompound };

function seedOf(base: string, round: number, { leaseMs, faultSeconds, workers, density }: Shape): string {
  return [base, round, leaseMs, faultSeconds, workers, density].join("_");
}

function shapeOf(seed: string): Shape | null {
  const [leaseMs, faultSeconds, workers, density] = seed.split("_").slice(-4).map(Number);
  if (leaseMs === undefined || faultSeconds === undefined || workers === undefined || density === undefined)
    return null;
  return { leaseMs, faultSeconds, workers, density };
}

async function runCompound({ seed, seconds, isRepeat }: StageTask): Promise<StageReport> {
  const beganAt = performance.now();
  const leftSeconds = (): number => seconds - (performance.now() - beganAt) / 1_000;
  const worker = await bundle(new URL("worker-main.ts", import.meta.url));
  const server = await PrivateServer.start(auditSettings, await findQuickFolder());
  const landed: Tally = new Map(faults.map((fault) => [fault, 0]));
  const reports: RoundReport[] = [];
  const failures: StageFailure[] = [];
  let more = 0;
  try {
    for (let round = 0; ; round++) {
      const drawn = isRepeat ? shapeOf(seed) : drawShape(leftSeconds(), round === 0);
      const isEnough = seconds < enoughSeconds || [...landed.values()].every((times) => times > 0);
      // On a slow machine less takes effect.
      const shape = drawn ?? (isRepeat || isEnough || more++ === mostMore ? null : another);
      if (shape === null || (isRepeat && round > 0)) break;
      const roundSeed = isRepeat ? seed : seedOf(seed, round, shape);
      const report = await runRound({
        seed: roundSeed,
        server,
        name: `round${round}`,
        workerPath: worker.path,
        faultMs: shape.faultSeconds * 1_000,
        ...shape,
      });
      reports.push(report);
      for (const [fault, times] of report.landed) count(landed, fault, times);
      if (report.violations.length === 0) continue;
      failures.push({ violations: report.violations, seed: roundSeed });
      break;
    }
  } finally {
    await server[Symbol.asyncDispose]();
    await worker.remove();
  }
  return summarise(landed, reports, failures, isRepeat ? 0 : seconds, (performance.now() - beganAt) / 60_000);
}

/**
 * In memory, where there is room: commits are as durable there as far as the server's own end goes, and disks that others use do
 * not slow them down.
 */
async function findQuickFolder(): Promise<string | undefined> {
  try {
    const { bavail, bsize } = await statfs(memory);
    if (bavail * bsize > leastFreeBytes) return join(memory, `pawl-chaos-${randomUUID()}`);
  } catch {
    // Not on this system.
  }
  return undefined;
}

/** Null when there is no time for another. */
function drawShape(leftSeconds: number, isFirst: boolean): Shape | null {
  if (leftSeconds >= long.faultSeconds + 2 * overheadSeconds) return long;
  const faultSeconds = Math.floor(leftSeconds - overheadSeconds);
  if (faultSeconds < 5 && !isFirst) return null;
  return { ...short, faultSeconds: Math.max(5, faultSeconds) };
}

function summarise(
  landed: Tally,
  reports: readonly RoundReport[],
  failures: StageFailure[],
  seconds: number,
  minutes: number,
): StageReport {
  const sum = (of: (report: RoundReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  if (failures.length === 0 && seconds >= enoughSeconds) {
    const missing = faults.filter((fault) => landed.get(fault) === 0);
    if (missing.length > 0) failures.push(provesNothing(`This never took effect: ${missing.join("; ")}.`));
  }
  const [asked, answered] = [sum((report) => report.asked), sum((report) => report.answered)];
  if (answered < leastAnswered * asked)
    failures.push(provesNothing(`Only ${answered} of ${asked} calls were answered after healing.`));
  const deeds: Tally = new Map();
  for (const report of reports) for (const [kind, times] of report.deeds) count(deeds, kind, times);
  const tried = [...deeds].map(([kind, times]) => `${kind} ${times}`).join(", ");
  const drained = reports.map(({ drainedMs }) => drainedMs);
  return {
    landed,
    figures: [
      `${reports.length} rounds, ${sum((report) => report.runs)} runs, ${minutes.toFixed(1)} min.`,
      `Tried, whether it took effect or not: ${tried}.`,
      `Drained ${Math.round(Math.max(0, ...drained))} ms after healing at most.`,
      `${answered} of ${asked} calls made after healing were answered.`,
    ],
    failures,
  };
}
