import { startPostgres } from "@pawl/embedded";
import { provesNothing, type Stage, type StageFailure, type StageReport } from "../stage.ts";
import { places, runBatch, type BatchReport } from "./batch.ts";
import { callKinds } from "./call.ts";

/** Fewer need not show every kind of call. */
const enoughCalls = 1_000;

/** Whatever may be given by mistake or in malice, to every public entry, on both stores. */
export const input: Stage = {
  name: "input",
  async run({ seed, seconds, isRepeat }) {
    await using server = await startPostgres({ durable: false });
    const endsAt = Date.now() + seconds * 1_000;
    const reports: BatchReport[] = [];
    const failures: StageFailure[] = [];
    for (let number = 0; failures.length === 0 && (number < places.length || Date.now() < endsAt); number++) {
      const batchSeed = isRepeat ? seed : `${seed}.${places[number % places.length]}.${number}`;
      const report = await runBatch(batchSeed, await server.createDatabase(`input_${number}`));
      reports.push(report);
      if (report.violations.length > 0) failures.push({ violations: report.violations, seed: batchSeed });
      if (isRepeat) break;
    }
    return summarise(reports, failures, seconds - (endsAt - Date.now()) / 1_000);
  },
};

function summarise(
  reports: readonly BatchReport[],
  failures: readonly StageFailure[],
  seconds: number,
): StageReport {
  const landed = new Map<string, number>();
  let calls = 0;
  for (const report of reports) {
    for (const [kind, times] of report.calls) {
      landed.set(kind, (landed.get(kind) ?? 0) + times);
      calls += times;
    }
  }
  const missing = callKinds.filter(
    (kind) => !landed.has(`${kind}, accepted`) || (kind !== "thrown" && !landed.has(`${kind}, refused`)),
  );
  const isEmpty = failures.length === 0 && calls >= enoughCalls && missing.length > 0;
  const batches = places.map(
    (place) => `${reports.filter((report) => report.place === place).length} ${place}`,
  );
  return {
    landed,
    figures: [
      `${calls} calls in ${reports.length} batches (${batches.join(", ")}), ${(calls / seconds).toFixed(0)} a second.`,
    ],
    failures: isEmpty
      ? [provesNothing(`These were never both accepted and refused: ${missing.join("; ")}.`)]
      : failures,
  };
}
