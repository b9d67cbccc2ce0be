import { createPawl, workflow } from "pawl";
import type { Measured, Meter } from "./meter.ts";

const steps = ["one", "two", "three", "four", "five"] as const;

const fiveSteps = workflow(
  { name: "five-steps", version: 1 },
  async (ctx, input: { readonly order: number }) => {
    for (const step of steps) await ctx.step(step, () => ({ order: input.order, ok: true }));
  },
);

/** Runs of five steps that do nothing, so many at a time; handlers cost nothing, so what is left is the engine. */
export async function benchFiveSteps(
  url: string,
  meter: Meter,
  runs: number,
  inFlight: number,
): Promise<Measured> {
  await using pawl = createPawl({ url });
  await pawl.worker({ workflows: [fiveSteps], concurrency: inFlight }).start();
  const batch = async (count: number): Promise<void> => {
    let next = 0;
    const caller = async (): Promise<void> => {
      while (next < count) await (await pawl.start(fiveSteps, { order: next++ })).result();
    };
    await Promise.all(Array.from({ length: inFlight }, caller));
  };
  await batch(Math.ceil(runs / 4));
  return await meter.measure(`five steps, ${inFlight} in flight`, { runs, stepsPerRun: steps.length }, () =>
    batch(runs),
  );
}
