import { describe, expect } from "vitest";
import { createPawl, workflow, type Context, type PawlEvent } from "../../src/index.ts";
import { eventually, places, test, upTo, work } from "../jobs/job-test.ts";

/** What a run has done, by its id: a ledger that no replay forgets. */
type Ledger = Map<string, string[]>;

const note = (ledger: Ledger, ctx: Context, name: string): Promise<string> =>
  ctx.step(name, () => {
    ledger.set(ctx.run.id, [...(ledger.get(ctx.run.id) ?? []), name]);
    return name;
  });

function builds(queue: string, ledger: Ledger) {
  const options = { name: `order-${queue}`, version: 1, queue };
  const before = workflow(options, async (ctx) => {
    await note(ledger, ctx, "reserve");
    await ctx.waitForSignal("pay", { timeout: "1h" });
    await note(ledger, ctx, "charge");
    await ctx.waitForSignal("ship", { timeout: "1h" });
    return note(ledger, ctx, "ship");
  });
  const after = workflow(options, async (ctx) => {
    await note(ledger, ctx, "reserve");
    await ctx.waitForSignal("pay", { timeout: "1h" });
    await note(ledger, ctx, ctx.patch("euro") ? "charge-euro" : "charge");
    await ctx.waitForSignal("ship", { timeout: "1h" });
    return note(ledger, ctx, "ship");
  });
  return { options, before, after };
}

describe.each(places)("changing code under running workflows in %s", (place) => {
  test("old and new workers side by side lose nothing and do nothing twice", async ({ open, queue }) => {
    const ledger: Ledger = new Map();
    const { before, after } = builds(queue, ledger);
    const pawl = open(place);
    const old = await work(pawl, { workflows: [before], queues: [queue] });
    const early = await Promise.all(upTo(10).map(() => pawl.start(before)));
    for (const run of early) await eventually(() => run.status()).toBe("waiting");
    for (const run of early.slice(0, 5)) await run.signal("pay");
    for (const run of early.slice(0, 5)) await eventually(() => ledger.get(run.id)).toHaveLength(2);

    // Both serve the queue: a run may meet either, again and again.
    await work(pawl, { workflows: [after], queues: [queue] });
    const late = await Promise.all(upTo(10).map(() => pawl.start(after)));
    for (const run of [...early.slice(5), ...late]) await run.signal("pay");
    for (const run of [...early, ...late]) await run.signal("ship");
    await old.stop();

    for (const run of [...early, ...late]) await run.result();
    for (const run of [...early, ...late]) {
      const [reserve, charge, ship, ...more] = ledger.get(run.id) ?? [];
      expect([reserve, ship, more]).toEqual(["reserve", "ship", []]);
      expect(charge).toMatch(/^charge(-euro)?$/);
      const patched = (await run.history()).some(({ kind }) => kind === "patched");
      expect(charge).toBe(patched ? "charge-euro" : "charge");
    }
    for (const run of early.slice(0, 5)) expect(ledger.get(run.id)).toContain("charge");
  }, 60_000);

  test("a blocked run says what was recorded and what was asked for, and goes on as soon as a worker fits", async ({
    open,
    queue,
  }) => {
    const ledger: Ledger = new Map();
    const { options, before } = builds(queue, ledger);
    const events: PawlEvent[] = [];
    const pawl = open(place, { onEvent: (event) => events.push(event) });
    const first = await work(pawl, { workflows: [before], queues: [queue] });
    const run = await pawl.start(before);
    await eventually(() => run.status()).toBe("waiting");
    await first.stop();

    const wrong = workflow(options, async (ctx) => note(ledger, ctx, "check-stock"));
    const second = await work(pawl, { workflows: [wrong], queues: [queue] });
    await run.signal("pay");
    await eventually(() => run.status()).toBe("blocked");
    const { data } = (await run.history()).at(-1)!;
    const { message } = data as { readonly message: string };
    for (const part of ['step "reserve"', 'step "check-stock" instead', "Nothing was executed", "ctx.patch"])
      expect(message).toContain(part);
    expect(ledger.get(run.id)).toEqual(["reserve"]);
    await second.stop();

    // Its own time comes in 5 s at the earliest: a worker that is new looks at once.
    const dueAt = (await pawl.get(run.id))!.dueAt!;
    await work(pawl, { workflows: [before], queues: [queue] });
    await eventually(() => ledger.get(run.id)).toEqual(["reserve", "charge"]);
    expect(Date.now()).toBeLessThan(dueAt.getTime());
    await run.signal("ship");
    expect(await run.result()).toBe("ship");
  }, 60_000);

  test("one worker serves several versions of a workflow, and each run keeps its own", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const versions = [1, 2, 3].map((version) =>
      workflow({ name: `versioned-${queue}`, version, queue }, async (ctx) => {
        await ctx.waitForSignal("go");
        return version;
      }),
    );
    await work(pawl, { workflows: versions, queues: [queue] });
    const runs = await Promise.all(versions.map((version) => pawl.start(version)));
    for (const run of runs) await run.signal("go");
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual([1, 2, 3]);
  });
});

test.for([
  ["a later format", "update {schema}.event set format = 2 where run_id = $1 and seq = 1", "format 2"],
  [
    "an unknown kind",
    "update {schema}.event set kind = 'step_dreamt' where run_id = $1 and seq = 1",
    "step_dreamt",
  ],
] as const)(
  "a history with %s is refused loudly, and nothing is executed",
  { timeout: 60_000 },
  async ([, sql, says], { queue, pool, schema }) => {
    const errors: string[] = [];
    const quiet = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
    await using pawl = createPawl({ pool, schema, autoMigrate: true, log: quiet });
    const ledger: Ledger = new Map();
    const { before } = builds(queue, ledger);
    const worker = await work(pawl, { workflows: [before], queues: [queue] });
    const run = await pawl.start(before);
    await eventually(() => run.status()).toBe("waiting");
    await worker.stop();
    await pool.query(`alter domain ${schema}.event_kind drop constraint event_kind_check`);
    await pool.query(sql.replace("{schema}", schema), [run.id]);
    const again = await work(pawl, { workflows: [before], queues: [queue] });
    await run.signal("pay");
    await eventually(() => run.status()).toBe("blocked");
    expect(ledger.get(run.id)).toEqual(["reserve"]);
    expect(errors).toEqual([expect.stringContaining("Upgrade this worker")]);
    expect(errors[0]).toContain(says);
    await again.stop();

    // Whoever understands it goes on.
    await pool.query(
      `update ${schema}.event set format = null, kind = 'step_completed' where run_id = $1 and seq = 1`,
      [run.id],
    );
    await work(pawl, { workflows: [before], queues: [queue] });
    await run.signal("ship");
    expect(await run.result()).toBe("ship");
  },
);
