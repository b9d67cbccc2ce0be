import { createPawl, workflow } from "pawl";
import type { Measured, Meter } from "./meter.ts";

const job = workflow({ name: "job", version: 1 }, async (_ctx, _input: { readonly order: number }) => {});

/** Plain runs that wait to be done: first all are started, then one worker drains them. */
export async function benchDrain(url: string, meter: Meter, runs: number): Promise<Measured> {
  await using pawl = createPawl({ url });
  const starters = 200;
  let next = 0;
  let last = "";
  const starter = async (): Promise<void> => {
    while (next < runs) {
      const { id } = await pawl.start(job, { order: next++ });
      if (id > last) last = id;
    }
  };
  await Promise.all(Array.from({ length: starters }, starter));
  const worker = pawl.worker({ workflows: [job], concurrency: 500 });
  return await meter.measure("drain of plain runs", { runs, stepsPerRun: 0 }, async () => {
    await worker.start();
    while ((await pawl.list({ workflow: "job", status: "pending", limit: 1 })).runs.length > 0) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await pawl.handle(last).result();
    await worker.stop();
  });
}
