import type { Pawl, RunHandle, Worker, WorkerOptions } from "../../src/index.ts";
import { work } from "../jobs/job-test.ts";

export { createGate, eventually, places, test, upTo } from "../jobs/job-test.ts";

/** A worker that keeps no run in memory: one that wakes is replayed from its history, as after a crash. */
export function replay(
  pawl: Pawl,
  queue: string,
  workflows: WorkerOptions["workflows"],
  options: Partial<WorkerOptions> = {},
): Promise<Worker> {
  return work(pawl, { workflows, queues: [queue], stickyRuns: 0, ...options });
}

/** The names in a run's history of facts of this kind, in order. */
export async function factsOf(
  run: Pick<RunHandle, "history">,
  kind: string,
): Promise<readonly (string | null)[]> {
  return (await run.history()).filter((event) => event.kind === kind).map(({ name }) => name);
}

/** Everything in a stream. */
export async function readAll(run: RunHandle, name: string, from = 1): Promise<readonly unknown[]> {
  const values: unknown[] = [];
  for await (const { value } of run.stream(name, { from })) values.push(value);
  return values;
}
