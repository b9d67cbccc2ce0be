import { setTimeout as pause } from "node:timers/promises";
import { workflow } from "pawl";

/** A plain job: one step, on a queue of its own. */
export const sendReport = workflow(
  { name: "send-report", version: 1, queue: "reports", timeout: "1h" },
  async (ctx, week: number) => {
    const pages = await ctx.step("render", ({ signal }) => render(week, signal));
    return { week, pages };
  },
);

/** Stands for something slow. It heeds the signal, so that nobody has to wait for it in vain. */
async function render(week: number, signal: AbortSignal): Promise<number> {
  await pause(week, undefined, { signal });
  return week + 2;
}
