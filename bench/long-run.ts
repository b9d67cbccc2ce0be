import { startPostgres } from "@pawl/embedded";
import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { createPawl, workflow } from "pawl";

// npx tsx --conditions=@pawl/source bench/long-run.ts [steps, default 10000]: what one long run costs, on an embedded Postgres
// with durable settings. CPU of this process for each step, in each tenth of the run; and how long a worker that
// starts after the lease of a killed one has ended takes to the call of the run's next step.

const steps = Number(process.argv[2] ?? 10_000);
const hangUrl = process.argv[3];
const sample = steps / 10;
const leaseMs = 2_000;

interface Reading {
  readonly cpuMs: number;
  readonly at: number;
}

const read = (): Reading => {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1000, at: performance.now() };
};

const readings = new Map<number, Reading>();
let called = (_step: number): void => {};

const longRun = workflow({ name: "long-run", version: 1 }, async (ctx, input: { readonly steps: number }) => {
  for (let step = 0; step < input.steps; step++) {
    await ctx.step("one", () => {
      if (step % sample === 0) readings.set(step, read());
      called(step);
      return { step, ok: true };
    });
  }
  readings.set(input.steps, read());
});

async function measureSteps(url: string): Promise<void> {
  await using pawl = createPawl({ url });
  await pawl.worker({ workflows: [longRun] }).start();
  // What a process pays once is paid before.
  await (await pawl.start(longRun, { steps: 3 * sample })).result();
  readings.clear();
  await (await pawl.start(longRun, { steps })).result();
  const tenths = Array.from({ length: 10 }, (_, tenth) => between(tenth * sample, (tenth + 1) * sample));
  console.table(
    tenths.map((each, tenth) => ({
      steps: `${tenth * sample} to ${(tenth + 1) * sample}`,
      "CPU ms/step": each.cpuMs.toFixed(3),
      "ms/step": each.at.toFixed(3),
    })),
  );
}

function between(from: number, to: number): Reading {
  const [a, b] = [readings.get(from), readings.get(to)];
  if (a === undefined || b === undefined) throw new Error(`Nothing was read at steps ${from} and ${to}.`);
  return { cpuMs: (b.cpuMs - a.cpuMs) / (to - from), at: (b.at - a.at) / (to - from) };
}

async function measureResume(url: string): Promise<void> {
  await orphan(url);
  await pause(2 * leaseMs);
  await using pawl = createPawl({ url });
  const next = new Promise<Reading>((resolve) => {
    called = () => resolve(read());
  });
  const before = read();
  await pawl.worker({ workflows: [longRun], lease: leaseMs }).start();
  const after = await next;
  console.log(
    `After ${steps - 1} steps: the next is called ${(after.at - before.at).toFixed(0)} ms after the worker's start, ` +
      `${(after.cpuMs - before.cpuMs).toFixed(0)} ms of CPU.`,
  );
}

/** Another process executes a run up to its last step, and is killed in it. */
async function orphan(url: string): Promise<void> {
  const args = [...process.execArgv, import.meta.filename, String(steps), url];
  const other = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => void other.stdout.once("data", resolve));
  other.kill("SIGKILL");
}

async function hang(url: string): Promise<void> {
  called = (step) => {
    if (step < steps - 1) return;
    process.stdout.write("hangs\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  const pawl = createPawl({ url });
  await pawl.worker({ workflows: [longRun], lease: leaseMs }).start();
  await pawl.start(longRun, { steps });
}

if (hangUrl !== undefined) await hang(hangUrl);
else {
  await using postgres = await startPostgres({ settings: { max_wal_size: "4GB" } });
  await using pawl = createPawl({ url: postgres.url });
  await pawl.migrate();
  await measureSteps(postgres.url);
  await measureResume(postgres.url);
}
