import { describe, expect } from "vitest";
import { aesGcmCodec, workflow, type Context, type Pawl, type RunHandle } from "../../src/index.ts";
import { eventually, places, test, upTo, work } from "../jobs/job-test.ts";

const codec = aesGcmCodec({ keys: [{ id: "one", key: new Uint8Array(32).fill(1) }] });

interface Turn {
  readonly turn: number;
  readonly got: readonly unknown[];
}

/** Takes a signal a turn, and goes on as another run after each; says what it got once it is told `stop`. */
const collecting = (queue: string) =>
  workflow(
    { name: "collecting", version: 1, queue },
    async (ctx: Context, { turn, got }: Turn): Promise<unknown> => {
      const item = await ctx.waitForSignal("item");
      if (item === "fail") throw Object.assign(new Error("told to"), { retryable: false });
      if (item === "stop") return { turn, got };
      return ctx.continueAs({ turn: turn + 1, got: [...got, item] });
    },
  );

const first = { turn: 1, got: [] };

async function runsOf(pawl: Pawl, handle: RunHandle): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let id: string | null = handle.id; id !== null;) {
    ids.push(id);
    id = (await pawl.get(id))?.continuedAs ?? null;
  }
  return ids;
}

describe.each(places)("a chain of runs in %s", (place) => {
  test("is one run to whoever has a handle of the first", async ({ open, queue }) => {
    const pawl = open(place, { codec });
    const loop = collecting(queue);
    const run = await pawl.start(loop, first, { key: queue });
    await work(pawl, { workflows: [loop], queues: [queue] });
    const result = run.result();
    for (const item of ["a", "b", "c"]) await run.signal("item", item);
    await eventually(() => runsOf(pawl, run)).toHaveLength(4);
    await run.signal("item", "late");
    await eventually(() => runsOf(pawl, run)).toHaveLength(5);
    await eventually(() => run.status()).toBe("waiting");
    await run.signal("item", "stop");
    expect(await result).toEqual({ turn: 5, got: ["a", "b", "c", "late"] });
    expect(await run.result()).toEqual({ turn: 5, got: ["a", "b", "c", "late"] });
    expect(await run.status()).toBe("completed");
    const ids = await runsOf(pawl, run);
    const again = await pawl.start(loop, first, { key: queue });
    expect(again.id).toBe(ids.at(-1));
    for (const id of ids) expect((await pawl.get(id))?.firstId).toBe(run.id);
    await expect(run.signal("item", "more")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("is one run to senders: a retried signal is one signal, whichever run took it", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const loop = collecting(queue);
    const run = await pawl.start(loop, first);
    await work(pawl, { workflows: [loop], queues: [queue] });
    for (const item of ["a", "b", "a", "b", "a"]) await run.signal("item", item, { idempotencyKey: item });
    await eventually(() => runsOf(pawl, run)).toHaveLength(3);
    for (const id of await runsOf(pawl, run)) await pawl.signal(id, "item", "a", { idempotencyKey: "a" });
    await run.signal("item", "stop");
    expect(await run.result()).toEqual({ turn: 3, got: ["a", "b"] });
  });

  test("loses and doubles no signal while it goes on under a crowd of senders", async ({ open, queue }) => {
    const pawl = open(place);
    const loop = collecting(queue);
    const run = await pawl.start(loop, first);
    await work(pawl, { workflows: [loop], queues: [queue] });
    await Promise.all(upTo(60).map((item) => run.signal("item", item)));
    await run.signal("item", "stop");
    const { got } = (await run.result()) as Turn;
    expect([...got].sort((a, b) => Number(a) - Number(b))).toEqual(upTo(60));
  }, 60_000);

  test("is cancelled, paused, resumed, terminated and redriven at its end", async ({ open, queue }) => {
    const pawl = open(place);
    const loop = collecting(queue);
    const start = async (): Promise<RunHandle> => {
      const run = await pawl.start(loop, first);
      await run.signal("item", "a");
      await eventually(async () => (await runsOf(pawl, run)).length).toBe(2);
      return run;
    };
    await work(pawl, { workflows: [loop], queues: [queue] });
    const cancelled = await start();
    await cancelled.cancel("enough");
    await expect(cancelled.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      details: { reason: "enough" },
    });

    const paused = await start();
    await paused.pause();
    await eventually(() => paused.status()).toBe("paused");
    await paused.resume();
    await eventually(() => paused.status()).toBe("waiting");
    await paused.terminate("now");
    await expect(paused.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });

    const failed = await start();
    await failed.signal("item", "fail");
    await expect(failed.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    await failed.redrive();
    const last = (await runsOf(pawl, failed)).at(-1)!;
    const kinds = (await pawl.handle(last).history()).map(({ kind }) => kind);
    expect(kinds).toContain("redriven");
  });

  test("answers the parent with the output of its last run, sealed or not", async ({ open, queue }) => {
    for (const options of [{}, { codec }]) {
      const pawl = open(place, options);
      const loop = collecting(queue);
      const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(loop, first));
      const worker = await work(pawl, { workflows: [loop, parent], queues: [queue] });
      const run = await pawl.start(parent);
      const waiting = async () =>
        (await pawl.list({ workflow: "collecting", queue, status: "waiting" })).runs[0]?.id ?? null;
      await eventually(waiting).not.toBeNull();
      const child = (await waiting())!;
      for (const item of ["x", "y", "stop"]) await pawl.signal(child, "item", item);
      expect(await run.result()).toEqual({ turn: 3, got: ["x", "y"] });
      expect(await run.history()).toMatchObject([{ kind: "child_started" }, { kind: "child_ended" }, {}]);
      await worker.stop();
    }
  });

  test("a parent that is cancelled cancels the live run of the chain", async ({ open, queue }) => {
    const pawl = open(place);
    const loop = collecting(queue);
    const parent = workflow({ name: "parent", version: 1, queue }, async (ctx) => ctx.call(loop, first));
    await work(pawl, { workflows: [loop, parent], queues: [queue] });
    const run = await pawl.start(parent);
    const children = async () => (await pawl.list({ workflow: "collecting", queue })).runs;
    await eventually(async () => (await children()).length).toBe(1);
    await pawl.signal((await children())[0]!.id, "item", "x");
    await eventually(async () => (await children()).length).toBe(2);
    await run.cancel();
    await eventually(async () => (await children())[0]?.status).toBe("cancelled");
  });

  test("tells when a patch can be retired", async ({ open, queue }) => {
    const pawl = open(place);
    const options = { name: `patched-${queue}`, version: 1, queue };
    const before = workflow(options, async (ctx) => ctx.waitForSignal("go"));
    const after = workflow(options, async (ctx) => {
      if (ctx.patch("faster")) {
        await ctx.step("warm up", () => "warm");
        return ctx.waitForSignal("go-faster");
      }
      return ctx.waitForSignal("go");
    });
    expect(await pawl.patches(after)).toEqual([]);
    const old = await pawl.start(before);
    const worker = await work(pawl, { workflows: [before], queues: [queue] });
    await eventually(() => old.status()).toBe("waiting");
    await worker.stop();
    await work(pawl, { workflows: [after], queues: [queue] });
    const fresh = await pawl.start(after);
    const uses = () => pawl.patches({ name: options.name, version: 1 });
    await eventually(uses).toMatchObject([
      { id: "faster", runs: 1, olderRuns: 1, newerRuns: 0, isRetirable: false },
    ]);
    await old.cancel();
    await eventually(uses).toMatchObject([{ id: "faster", runs: 1, olderRuns: 0, isRetirable: true }]);
    await fresh.cancel();
    await eventually(uses).toMatchObject([{ runs: 0, olderRuns: 0, isRetirable: true }]);
    for (const bad of [undefined, {}, { name: "x", version: 0 }, { name: "", version: 1 }])
      await expect(pawl.patches(bad as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

test("a signal in a transaction, or by SQL, follows the chain", async ({ open, queue, pool, home }) => {
  const pawl = open("postgres", { codec });
  const loop = collecting(queue);
  const run = await pawl.start(loop, first);
  await work(pawl, { workflows: [loop], queues: [queue] });
  await run.signal("item", "a");
  await eventually(() => runsOf(pawl, run)).toHaveLength(2);
  const client = await pool.connect();
  await client.query("begin");
  await run.signal("item", "b", { tx: client });
  await client.query("commit");
  await eventually(() => runsOf(pawl, run)).toHaveLength(3);
  await client.query(`select ${home}.signal($1, 'item', '"c"', 'key')`, [run.id]);
  await eventually(() => runsOf(pawl, run)).toHaveLength(4);
  const again = await client.query(`select ${home}.signal($1, 'item', '"c"', 'key') as answer`, [run.id]);
  expect(again.rows).toEqual([{ answer: "duplicate" }]);

  // Sent before the run goes on, and committed after.
  const last = (await runsOf(pawl, run)).at(-1)!;
  await client.query("begin");
  await pawl.signal(last, "item", "d", { tx: client });
  await run.signal("item", "between");
  await eventually(() => runsOf(pawl, run)).toHaveLength(5);
  await client.query("commit");
  client.release();
  await eventually(() => runsOf(pawl, run)).toHaveLength(6);
  await run.signal("item", "stop");
  expect(await run.result()).toEqual({ turn: 6, got: ["a", "b", "c", "between", "d"] });
});

test("what nobody has heard of is passed on by the sweep", async ({ open, queue, pool, home }) => {
  const pawl = open("postgres", { listen: false });
  const loop = collecting(queue);
  const run = await pawl.start(loop, first);
  await work(pawl, { workflows: [loop], queues: [queue] });
  const client = await pool.connect();
  await client.query("begin");
  await run.signal("item", "late", { tx: client });
  await run.signal("item", "a");
  await eventually(() => runsOf(pawl, run)).toHaveLength(2);
  await client.query("commit");
  client.release();
  await pool.query(`select * from ${home}.sweep_v1(0::smallint, 100, null)`);
  await eventually(() => runsOf(pawl, run)).toHaveLength(3);
  await run.signal("item", "stop");
  expect(await run.result()).toEqual({ turn: 3, got: ["a", "late"] });
});
