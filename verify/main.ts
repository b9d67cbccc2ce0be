import { parseArgs } from "node:util";
import { seedBase } from "pawl-test-support/seed";
import { runMutants } from "./mutants/run-mutants.ts";
import { profiles } from "./profiles.ts";
import { runSchedule } from "./sim/schedule.ts";
import { describeReport, runInTime } from "./stage.ts";

const names = [...profiles.keys()];

const usage = `npm run verify -- [options]

  --seconds N   how long to look for a broken promise (default 60)
  --hours N     the same, in hours
  --profile P   what to do in that time: ${names.join(", ")} (default quick; with --seed simulation)
  --seed S      only this, as it was
  --trace       with --seed: print everything that happens in the simulation
  --mutants     [name ...] plant mistakes in copies of the engine, one at a time: each must be found
`;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean", default: false },
    seconds: { type: "string" },
    hours: { type: "string" },
    profile: { type: "string" },
    seed: { type: "string" },
    trace: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
  },
});

if (options.help) console.log(usage);
else if (options.trace && options.seed !== undefined)
  console.log((await runSchedule(options.seed, { tracing: true })).trace);
else if (options.mutants) await verifyMutants();
else await verify();

async function verifyMutants(): Promise<void> {
  const terms = {
    names: positionals,
    profile: options.profile ?? "quick",
    seed: options.seed ?? seedBase(),
    seconds: secondsOf(options.seconds, 1) ?? 60,
  };
  if (!(await runMutants(terms))) process.exitCode = 1;
}

async function verify(): Promise<void> {
  const profile = profiles.get(options.profile ?? (options.seed === undefined ? "quick" : "simulation"));
  const seconds = secondsOf(options.seconds, 1) ?? secondsOf(options.hours, 3_600) ?? 60;
  if (profile === undefined || !(seconds > 0)) {
    console.error(usage);
    process.exitCode = 2;
    return;
  }
  const isRepeat = options.seed !== undefined;
  const seed = options.seed ?? seedBase();
  for (const { stage, share } of profile) {
    console.log(
      `== ${stage.name}: ${isRepeat ? `seed ${seed}` : `${Math.round(share * seconds)} s, seeds ${seed}.*`}`,
    );
    const report = await runInTime(stage, { seed, seconds: share * seconds, isRepeat });
    console.log(describeReport(report, stage.name));
    if (report.failures.length > 0) process.exitCode = 1;
    if (report.goesOn === true) process.exit();
  }
  if (process.exitCode !== 1) console.log("Every promise was kept.");
}

function secondsOf(text: string | undefined, unit: number): number | undefined {
  return text === undefined ? undefined : Number(text) * unit;
}
