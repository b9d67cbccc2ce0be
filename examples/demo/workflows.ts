import { workflow } from "pawl";

/** What a worker process tells the demo while it works. */
export interface Report {
  readonly orderId: number;
  readonly step: string;
  readonly what: "begins" | "done";
}

export const stepNames = ["reserve", "charge", "pack", "ship"] as const;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A step that takes its time, so that there is something to interrupt. */
async function work(orderId: number, step: string): Promise<string> {
  report({ orderId, step, what: "begins" });
  await pause(500);
  report({ orderId, step, what: "done" });
  return `${step} by process ${process.pid}`;
}

function report(message: Report): void {
  process.send?.(message);
}

export const order = workflow(
  { name: "order", version: 1 },
  async (ctx, input: { readonly orderId: number }) => {
    const done: string[] = [];
    for (const step of stepNames) {
      done.push(await ctx.step(step, () => work(input.orderId, step)));
    }
    return done;
  },
);
