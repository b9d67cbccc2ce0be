import { workflow } from "pawl";

/** A plain job: one step, on a queue of its own. */
export const sendReport = workflow(
  { name: "send-report", version: 1, queue: "reports", timeout: "1h" },
  async (ctx, week: number) => {
    const pages = await ctx.step("render", ({ signal }) => render(week, signal));
    return { week, pages };
  },
);

async function render(week: number, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  return week + 2;
}
