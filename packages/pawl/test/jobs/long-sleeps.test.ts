import { describe, expect, onTestFinished } from "vitest";
import { workflow } from "../../src/index.ts";
import { createGate, eventually, places, test, work } from "./job-test.ts";

/** What Node says of a delay that its timers cannot hold. */
function watchOverflows(): readonly string[] {
  const overflows: string[] = [];
  const note = ({ name, message }: Error): void => {
    if (name === "TimeoutOverflowWarning") overflows.push(message);
  };
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  return overflows;
}

describe.each(places)("a run of %s that waits for months", (place) => {
  test("waits when parked, and while a step of it runs", async ({ open, queue }) => {
    const overflows = watchOverflows();
    const pawl = open(place);
    const gate = createGate();
    const begun = createGate();
    const patient = workflow({ name: "patient", version: 1, queue, timeout: "90d" }, async (ctx) => {
      const step = ctx.step("long", () => {
        begun.open();
        return gate.opened;
      });
      const waits = [ctx.sleep("60d"), ctx.sleepUntil(Date.now() + 61 * 86_400_000)];
      await Promise.all([step, ...waits, ctx.waitForSignal("never", { timeout: "62d" })]);
    });
    const retried = workflow(
      { name: "retried", version: 1, queue, retry: { attempts: 2, backoff: "fixed", initial: "60d" } },
      async () => {
        throw new Error("no");
      },
    );
    await work(pawl, { workflows: [patient, retried], queues: [queue] });
    const run = await pawl.start(patient);
    const failed = await pawl.start(retried);
    const delayed = await pawl.start(retried, undefined, { delay: "60d" });
    await begun.opened;
    await eventually(async () => (await run.history()).map(({ kind }) => kind)).toEqual([
      "timer_set",
      "timer_set",
      "timer_set",
    ]);
    gate.open();
    await eventually(() => run.status()).toBe("waiting");
    await eventually(() => failed.status()).toBe("waiting");
    expect((await run.history()).map(({ kind }) => kind)).not.toContain("timer_fired");
    expect(await delayed.status()).toBe("pending");
    await new Promise((resolve) => setImmediate(resolve));
    expect(overflows).toEqual([]);
  });
});
