import { execFileSync, fork } from "node:child_process";
import { parseArgs } from "node:util";
import { describeViolation, type Violation } from "./hist/verdict.ts";
import { runBatch, type BatchReport } from "./sim/batch.ts";
import { runSchedule } from "./sim/schedule.ts";
import { count, faultKinds, operationKinds, type Tally } from "./sim/tally.ts";

const usage = `npm run verify -- [options]

  --seconds N   how long to look for a schedule that breaks a promise (default 60)
  --seed S      run this one schedule
  --trace       with --seed: print everything that happens
`;

const { values: options } = parseArgs({
  options: {
    help: { type: "boolean", default: false },
    seconds: { type: "string", default: "60" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    /** For its own use: the share of one process, whose seeds begin like this. */
    share: { type: "string" },
  },
});

/** CI has two cores. */
const processes = 2;
/** Fewer schedules than this need not show every fault and every operation. */
const enoughSchedules = 2_000;
const leastAnswered = 0.9;

if (options.help) console.log(usage);
else if (options.share !== undefined) await runShare(options.share);
else if (options.seed !== undefined) await runOne(options.seed);
else await runAll();

async function runOne(seed: string): Promise<void> {
  const { violations, trace } = await runSchedule(seed, { tracing: options.trace });
  if (options.trace) console.log(trace);
  if (violations.length === 0) console.log(`Seed ${seed} keeps every promise.`);
  else printFailure(seed, violations);
}

async function runShare(prefix: string): Promise<void> {
  // Made for every failed call and read by nobody; whoever repeats the schedule sees them.
  Error.stackTraceLimit = 0;
  const report = await runBatch((index) => `${prefix}.${index}`, Number(options.seconds));
  process.send?.(report);
  process.disconnect();
}

async function runAll(): Promise<void> {
  const base = seedBase();
  console.log(`Simulating for ${options.seconds} s in ${processes} processes, seeds ${base}.*`);
  const shares = Array.from({ length: processes }, (_, index) => forkShare(`${base}.${index}`));
  printReport(await Promise.all(shares));
}

/** Today's date and the commit, so that every night and every commit looks elsewhere. */
function seedBase(): string {
  const date = new Date().toISOString().slice(0, 10).replaceAll("-", "");
  try {
    const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      encoding: "utf8",
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "ignore"],
    });
    return `${date}.${commit.trim()}`;
  } catch {
    return date;
  }
}

function forkShare(prefix: string): Promise<BatchReport> {
  return new Promise((resolve, reject) => {
    // What a schedule leaves behind dies young: with room for it, collecting it costs little.
    const execArgv = [...process.execArgv, "--max-semi-space-size=64"];
    const child = fork(import.meta.filename, ["--share", prefix, "--seconds", options.seconds], { execArgv });
    child.on("message", (report) => resolve(report as BatchReport));
    child.on("exit", (code) =>
      reject(new Error(`A share of the simulation ended with ${code} and no report.`)),
    );
  });
}

function printReport(reports: readonly BatchReport[]): void {
  const landed: Tally = new Map([...faultKinds, ...operationKinds].map((kind) => [kind, 0]));
  for (const report of reports) for (const [kind, times] of report.landed) count(landed, kind, times);
  const sum = (of: (report: BatchReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  const schedules = sum((report) => report.schedules);
  const rate = sum((report) => report.schedules / report.seconds) / reports.length;
  const [asked, answered] = [sum((report) => report.asked), sum((report) => report.answered)];

  for (const [kind, times] of [...landed].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${String(times).padStart(9)}  ${kind}`);
  console.log(`${schedules} schedules, ${rate.toFixed(0)} a second and process.`);
  console.log(`${sum((report) => report.repeated)} of them twice, with the same trace.`);
  console.log(`${answered} of ${asked} calls made after healing were answered.`);

  for (const { failure } of reports) if (failure !== null) printFailure(failure.seed, failure.violations);
  if (process.exitCode === 1) return;
  if (schedules >= enoughSchedules) {
    const isMissing = (kind: string): boolean => landed.get(kind) === 0;
    const missingFaults = faultKinds.filter(isMissing);
    if (missingFaults.length > 0) complain(`These faults never landed: ${missingFaults.join(", ")}.`);
    const missingOperations = operationKinds.filter(isMissing);
    if (missingOperations.length > 0) complain(`This never happened: ${missingOperations.join("; ")}.`);
  }
  if (answered < leastAnswered * asked)
    complain(`Only ${answered} of ${asked} calls were answered after healing.`);
}

function printFailure(seed: string, violations: readonly Violation[]): void {
  for (const violation of violations) console.log(describeViolation(violation));
  complain(
    `Seed ${seed} breaks ${violations[0]?.invariant}. To see it again:\n\n    npm run verify -- --seed ${seed}\n`,
  );
}

function complain(text: string): void {
  console.log(text);
  process.exitCode = 1;
}
