import { startPostgres } from "@pawl/embedded";
import { createPawl } from "pawl";
import { benchDrain } from "./drain.ts";
import { benchFiveSteps } from "./five-steps.ts";
import { createMeter, type Measured } from "./meter.ts";

// npm run bench [-- --short] [-- --json]: Pawl on an embedded Postgres with durable settings, one worker process.
// Rates depend on the machine; calls and WAL bytes do not, and are what to watch.
// Started by hand, each says how: long-run.ts (10,000 steps, and their replay), fan-out.ts (10,000 children), values.ts, partitioning.ts.

const isShort = process.argv.includes("--short");
const repetitions = isShort ? 1 : 3;
const runs = isShort ? 2_000 : 10_000;

await using postgres = await startPostgres({
  settings: {
    shared_preload_libraries: "pg_stat_statements",
    "pg_stat_statements.max": "10000",
    max_wal_size: "4GB",
  },
});
const setUp = createPawl({ url: postgres.url });
await setUp.migrate();
await setUp.close();
const meter = await createMeter(postgres.url);

const measured: Measured[] = [];
for (let repetition = 0; repetition < repetitions; repetition++) {
  for (const inFlight of isShort ? [200] : [50, 200, 1_000]) {
    measured.push(await benchFiveSteps(postgres.url, meter, runs, inFlight));
  }
  measured.push(await benchDrain(postgres.url, meter, runs));
}
await meter.close();

if (process.argv.includes("--json")) console.log(JSON.stringify(measured, null, 2));
else {
  console.table(
    measured.map((row) => ({
      workload: row.name,
      runs: row.runs,
      "runs/s": Math.round(row.runsPerSecond),
      "calls/run": Number(row.callsPerRun.toFixed(3)),
      "calls/step": row.callsPerStep === null ? "" : Number(row.callsPerStep.toFixed(3)),
      "WAL bytes/run": Math.round(row.walBytesPerRun),
    })),
  );
}
