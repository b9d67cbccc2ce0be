import { fork } from "node:child_process";
import { bundle } from "../bundle.ts";
import { provesNothing, type Stage, type StageFailure, type StageReport } from "../stage.ts";
import type { BatchReport } from "./batch.ts";
import { describeTerms } from "./describe-terms.ts";
import { drawTerms, runSchedule } from "./schedule.ts";
import { count, faultKinds, operationKinds, rareKinds, type Tally } from "./tally.ts";

/** CI has two cores. */
const processes = 2;
/** Fewer schedules than this need not show every fault and every operation. */
const enoughSchedules = 4_000;
/** What happens in one of some thousand schedules need not show in fewer than this. */
const enoughForRare = 50_000;
const leastAnswered = 0.9;

/** The real engine in a simulated world: many small schedules, each with its own programs, callers and faults. */
export const simulation: Stage = {
  name: "simulation",
  run: ({ seed, seconds, isRepeat }) => (isRepeat ? repeat(seed) : simulate(seed, seconds)),
};

async function repeat(seed: string): Promise<StageReport> {
  const terms = drawTerms(seed);
  const { violations } = await runSchedule(seed, {}, terms);
  const failures = violations.length === 0 ? [] : [{ violations, seed, story: describeTerms(terms) }];
  return { landed: new Map(), figures: [], failures };
}

async function simulate(seed: string, seconds: number): Promise<StageReport> {
  const share = await bundle(new URL("batch-main.ts", import.meta.url));
  try {
    const shares = Array.from({ length: processes }, (_, index) =>
      forkShare(share.path, `${seed}.${index}`, seconds),
    );
    return summarise(await Promise.all(shares));
  } finally {
    await share.remove();
  }
}

function forkShare(path: string, prefix: string, seconds: number): Promise<BatchReport> {
  return new Promise((resolve, reject) => {
    // What a schedule leaves behind dies young: with room for it, collecting it costs little.
    // Compiled too early, code is soon compiled again: by threads that the other share's core would have to feed.
    const execArgv = ["--max-semi-space-size=64", "--interrupt-budget=500000"];
    const child = fork(path, [prefix, String(seconds)], { execArgv });
    child.on("message", (report) => resolve(report as BatchReport));
    child.on("exit", (code) =>
      reject(new Error(`A share of the simulation ended with ${code} and no report.`)),
    );
  });
}

function summarise(reports: readonly BatchReport[]): StageReport {
  const landed: Tally = new Map([...faultKinds, ...operationKinds].map((kind) => [kind, 0]));
  for (const report of reports) for (const [kind, times] of report.landed) count(landed, kind, times);
  const sum = (of: (report: BatchReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  const schedules = sum((report) => report.schedules);
  const rate = schedules / sum((report) => report.cpuSeconds);
  const [asked, answered] = [sum((report) => report.asked), sum((report) => report.answered)];
  const failures: StageFailure[] = reports.flatMap(({ failure }) => failure ?? []);
  const missing = [...faultKinds, ...operationKinds].filter(
    (kind) =>
      landed.get(kind) === 0 && schedules >= (rareKinds.includes(kind) ? enoughForRare : enoughSchedules),
  );
  if (failures.length === 0 && missing.length > 0)
    failures.push(provesNothing(`This never happened: ${missing.join("; ")}.`));
  if (answered < leastAnswered * asked)
    failures.push(provesNothing(`Only ${answered} of ${asked} calls were answered after healing.`));
  return {
    landed,
    figures: [
      `${schedules} schedules, ${rate.toFixed(0)} for each second of a core.`,
      `${sum((report) => report.repeated)} of them twice, with the same trace.`,
      `${answered} of ${asked} calls made after healing were answered.`,
    ],
    failures,
  };
}
