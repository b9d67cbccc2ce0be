import { describe, expect } from "vitest";
import { z } from "zod";
import { ref, workflow } from "../../src/index.ts";
import { places, test, upTo } from "./job-test.ts";

const echo = workflow({ name: "echo", version: 1 }, async (_, input: unknown) => input);

describe.each(places)("a run started in %s", (place) => {
  test("is pending, with all that was said of it, before anybody executes it", async ({ open, queue }) => {
    const pawl = open(place);
    const before = Date.now() - 2_000;
    const run = await pawl.start(echo, { order: 7 }, { queue, key: queue, priority: 3, tags: ["blue"] });
    const seen = await pawl.get(run.id);
    expect(seen).toMatchObject({
      id: run.id,
      workflow: "echo",
      version: 1,
      queue,
      key: queue,
      priority: 3,
      status: "pending",
      input: { order: 7 },
      output: undefined,
      error: null,
      tags: ["blue"],
      startAt: null,
      expiresAt: null,
      deadlineAt: null,
      attempt: 1,
      workerId: null,
      parentId: null,
      rootId: run.id,
      endedAt: null,
    });
    expect(seen!.createdAt.getTime()).toBeGreaterThan(before);
    expect(seen!.createdAt.getTime()).toBeLessThan(Date.now() + 2_000);
  });

  test("without a key is a run of its own each time", async ({ open, queue }) => {
    const pawl = open(place);
    const runs = await Promise.all(upTo(5).map(() => pawl.start(echo, 1, { queue })));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(5);
  });

  test("with a key that is taken is the run that has it, whatever has become of that", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const first = await pawl.start(echo, 1, { queue, key: queue });
    expect((await pawl.start(echo, 1, { queue, key: queue })).id).toBe(first.id);
    await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    const again = await pawl.start(echo, 1, { queue, key: queue });
    expect(again.id).toBe(first.id);
    expect(await again.result()).toBe(1);
    expect(await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle()).toMatchObject({
      claimed: 0,
    });
  });

  test("with a taken key keeps its own priority and time", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(echo, 1, { queue, key: queue, priority: 5 });
    await pawl.start(echo, 1, { queue, key: queue, priority: 1, delay: "1h" });
    expect(await pawl.get(run.id)).toMatchObject({ priority: 5, dueAt: null });
  });

  test("with a taken key and another input is a conflict that names the run", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(echo, 1, { queue, key: queue });
    await expect(pawl.start(echo, 2, { queue, key: queue })).rejects.toMatchObject({
      code: "KEY_CONFLICT",
      details: { key: queue, runId: run.id },
    });
    await expect(pawl.start(echo, 1, { queue, key: queue, onConflict: "reject" })).rejects.toMatchObject({
      code: "KEY_CONFLICT",
    });
  });

  test("with one key from twenty callers at once is one run", async ({ open, queue }) => {
    const pawl = open(place);
    const runs = await Promise.all(upTo(20).map(() => pawl.start(echo, 1, { queue, key: queue })));
    expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
    const summary = await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    expect(summary).toMatchObject({ claimed: 1, completed: 1 });
  });

  test("for later stays pending until then, and says when", async ({ open, queue }) => {
    const pawl = open(place);
    const at = new Date(Date.now() + 3_600_000);
    const later = await pawl.start(echo, 1, { queue, at });
    const delayed = await pawl.start(echo, 1, { queue, delay: "1h" });
    const summary = await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    expect(summary).toMatchObject({ claimed: 0, isIdle: true });
    expect(await pawl.get(later.id)).toMatchObject({ status: "pending", dueAt: at, startAt: at });
    expect(Math.abs((await pawl.get(delayed.id))!.dueAt!.getTime() - at.getTime())).toBeLessThan(5_000);
  });

  test("for a time that has passed is ready at once", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(echo, "late", { queue, at: new Date(Date.now() - 86_400_000) });
    await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe("late");
  });

  test("for a moment from now runs then, not before", async ({ open, queue }) => {
    const pawl = open(place);
    const asked = Date.now();
    const run = await pawl.start(echo, 1, { queue, delay: 300 });
    await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle({ linger: "5s" });
    expect(await run.status()).toBe("completed");
    expect((await pawl.get(run.id))!.endedAt!.getTime() - asked).toBeGreaterThanOrEqual(295);
  });

  test("with an input that is missing, null, empty or large comes through as it is", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const large = { text: "æ\u{1F9F6}\n".repeat(60_000) };
    const inputs = [undefined, null, "", 0, false, [], {}, large];
    const runs = await Promise.all(inputs.map((input) => pawl.start(echo, input, { queue })));
    await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(inputs);
  });

  test("with an input that is too large is refused, and nothing is stored", async ({ open, queue }) => {
    const pawl = open(place, { maxPayloadBytes: 1_000 });
    await expect(pawl.start(echo, "x".repeat(1_001), { queue })).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
    });
    expect((await pawl.list({ queue })).runs).toEqual([]);
  });

  test("may have any name that can be written down", async ({ open, queue }) => {
    const pawl = open(place);
    const names = [
      `it's "quoted"; drop table run; --`,
      "名前 🧶",
      " spaced ",
      "%_\\",
      "a".repeat(255),
      "$1 {schema}",
    ];
    for (const name of names) {
      const odd = workflow({ name, version: 1 }, async (ctx) => ctx.step(name, () => name));
      const run = await pawl.start(odd, undefined, {
        queue,
        key: `${queue} ${name.slice(0, 200)}`,
        tags: [name],
      });
      await pawl.worker({ workflows: [odd], queues: [queue] }).runUntilIdle();
      expect(await run.result()).toBe(name);
      expect((await pawl.list({ queue, workflow: name, tags: [name] })).runs.map(({ id }) => id)).toEqual([
        run.id,
      ]);
    }
  });

  test("may be in a queue of any name", async ({ open, queue }) => {
    const pawl = open(place);
    const odd = `${queue} 'b"c; -- ü`;
    const run = await pawl.start(echo, 1, { queue: odd });
    await pawl.worker({ workflows: [echo], queues: [odd] }).runUntilIdle();
    expect(await run.result()).toBe(1);
  });

  test.for([
    ["a name that is empty", { queue: "" }],
    ["a name longer than 255 bytes", { key: "ü".repeat(128) }],
    ["a name with a NUL", { key: "a\0b" }],
    ["a priority that is no whole number", { priority: 1.5 }],
    ["a priority beyond 32 bits", { priority: 2 ** 31 }],
    ["a date that is none", { at: new Date(Number.NaN) }],
    ["a negative delay", { delay: -1 }],
    ["an unknown option", { prio: 1 }],
    ["no attempts at all", { retry: { attempts: 0 } }],
    ["a date and a delay", { at: new Date(), delay: 1 }],
    ["an end before the beginning", { at: new Date(2_000), expiresAt: new Date(1_000) }],
  ] as const)("with %s is refused", async ([, options], { open }) => {
    await expect(open(place).start(echo, 1, options as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
  });

  test("of another service's workflow needs its name alone", async ({ open, queue }) => {
    const pawl = open(place);
    const run = await pawl.start(ref<typeof echo>("echo", 1), "by name", { queue });
    await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe("by name");
  });

  test("has an input that fits its schema, or is not started", async ({ open, queue }) => {
    const pawl = open(place);
    const strict = workflow(
      {
        name: "strict",
        version: 1,
        queue,
        input: z.object({ to: z.string(), copies: z.number().default(1) }),
      },
      async (_, { copies }) => copies,
    );
    await expect(pawl.start(strict, { to: 7 } as never)).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    expect((await pawl.list({ queue })).runs).toEqual([]);
    const run = await pawl.start(strict, { to: "me" });
    await pawl.worker({ workflows: [strict], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe(1);
  });

  test("from inside a job is executed like any other", async ({ open, queue }) => {
    const pawl = open(place);
    const parent = workflow(
      { name: "spawner", version: 1, queue },
      async (ctx, depth: number): Promise<number> => {
        if (depth === 0) return 0;
        return ctx.step("spawn", async ({ idempotencyKey }) => {
          await pawl.start(parent, depth - 1, { queue, key: idempotencyKey });
          return depth;
        });
      },
    );
    await pawl.start(parent, 5, { queue });
    const summary = await pawl.worker({ workflows: [parent], queues: [queue] }).runUntilIdle();
    expect(summary).toMatchObject({ completed: 6, failed: 0 });
  });
});

test("what is not there is null, and cannot be told anything", async ({ open }) => {
  const pawl = open();
  const stranger = (await open("memory").start(echo, 1)).id;
  expect(await pawl.get(stranger)).toBeNull();
  expect(await pawl.get("no id at all")).toBeNull();
  const handle = pawl.handle(stranger);
  const missing = { code: "RUN_NOT_FOUND" };
  await expect(handle.status()).rejects.toMatchObject(missing);
  await expect(handle.cancel()).rejects.toMatchObject(missing);
  await expect(handle.terminate()).rejects.toMatchObject(missing);
  await expect(handle.redrive()).rejects.toMatchObject(missing);
  await expect(handle.reschedule({ delay: 0 })).rejects.toMatchObject(missing);
  await expect(handle.pause()).rejects.toMatchObject(missing);
  await expect(handle.resume()).rejects.toMatchObject(missing);
  await expect(handle.attempts()).rejects.toMatchObject(missing);
  await expect(handle.history()).rejects.toMatchObject(missing);
});

describe("a run started in a caller's transaction", () => {
  test("is there for nobody until the commit", async ({ open, pool, queue }) => {
    const pawl = open();
    const client = await pool.connect();
    await client.query("begin");
    const run = await pawl.start(echo, "tx", { queue, tx: client });
    expect(await pawl.get(run.id)).toBeNull();
    expect(await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle()).toMatchObject({
      claimed: 0,
    });
    await client.query("commit");
    client.release();
    await pawl.worker({ workflows: [echo], queues: [queue] }).runUntilIdle();
    expect(await run.result()).toBe("tx");
  });

  test("is gone with the rollback, its key free again", async ({ open, pool, queue }) => {
    const pawl = open();
    const client = await pool.connect();
    await client.query("begin");
    const lost = await pawl.start(echo, 1, { queue, key: queue, tx: client });
    await client.query("rollback");
    client.release();
    expect(await pawl.get(lost.id)).toBeNull();
    const kept = await pawl.start(echo, 2, { queue, key: queue });
    expect(await pawl.get(kept.id)).toMatchObject({ key: queue, input: 2 });
  });
});
