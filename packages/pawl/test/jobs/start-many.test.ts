import { describe, expect } from "vitest";
import { createPawl, workflow } from "../../src/index.ts";
import { places, test, upTo } from "./job-test.ts";

const echo = workflow({ name: "echo", version: 1 }, async (_, input: number) => input);

describe.each(places)("many runs started at once in %s", (place) => {
  test("come back in the order they were given, and are executed once each", async ({ open, queue }) => {
    const pawl = open(place);
    const seen: number[] = [];
    const note = workflow({ name: "note", version: 1 }, async (_, input: number) => {
      seen.push(input);
    });
    const runs = await pawl.startMany(
      note,
      upTo(250).map((input) => ({ input })),
      { queue },
    );
    expect(runs).toHaveLength(250);
    for (const index of [0, 1, 99, 249]) expect((await pawl.get(runs[index]!.id))!.input).toBe(index);
    await pawl.worker({ workflows: [note], queues: [queue], concurrency: 1 }).runUntilIdle();
    expect(seen).toEqual(upTo(250));
  });

  test("may be none", async ({ open }) => {
    expect(await open(place).startMany(echo, [])).toEqual([]);
  });

  test("share options, which each may overrule", async ({ open, queue }) => {
    const pawl = open(place);
    const [plain, own] = await pawl.startMany(
      echo,
      [{ input: 1 }, { input: 2, priority: -1, delay: "1h", tags: ["own"] }],
      { queue, priority: 9, tags: ["all"], at: new Date(0) },
    );
    expect(await pawl.get(plain!.id)).toMatchObject({ priority: 9, queue, dueAt: null });
    expect(await pawl.get(own!.id)).toMatchObject({ priority: -1, queue, dueAt: expect.any(Date) });
    expect((await pawl.list({ queue, tags: ["own"] })).runs.map(({ id }) => id)).toEqual([own!.id]);
    expect((await pawl.list({ queue, tags: ["all"] })).runs.map(({ id }) => id)).toEqual([plain!.id]);
  });

  test("with one key twice are one run", async ({ open, queue }) => {
    const pawl = open(place);
    const items = [1, 2, 1].map((input) => ({ input, key: `${queue} ${input}` }));
    const runs = await pawl.startMany(echo, items, { queue });
    expect(runs[2]!.id).toBe(runs[0]!.id);
    expect((await pawl.list({ queue })).runs).toHaveLength(2);
    const again = await pawl.startMany(echo, items, { queue });
    expect(again.map(({ id }) => id)).toEqual(runs.map(({ id }) => id));
  });

  test("are none when one input or option is wrong, and the error says which", async ({ open, queue }) => {
    const pawl = open(place);
    const items = upTo(1_500).map((input) => ({ input }));
    const wrongOption = [...items, { input: 1, priority: 0.5 }];
    await expect(pawl.startMany(echo, wrongOption, { queue })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining("item 1500"),
    });
    const wrongInput = [...items, { input: (() => {}) as never }];
    await expect(pawl.startMany(echo, wrongInput, { queue })).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
    });
    expect((await pawl.list({ queue })).runs).toEqual([]);
  });

  test("stop at the chunk with a conflict, which is started not at all, and can be repeated", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const items = upTo(3_000).map((input) => ({ input, key: `${queue} ${input}` }));
    const rival = await pawl.start(echo, -1, { queue: `${queue} rival`, key: `${queue} 1500` });
    await expect(pawl.startMany(echo, items, { queue })).rejects.toMatchObject({
      code: "KEY_CONFLICT",
      details: { started: 1_000, key: `${queue} 1500`, runId: rival.id },
    });
    const ids = new Set<string>();
    for await (const run of pawl.listAll({ queue, limit: 1_000 })) ids.add(run.id);
    expect(ids.size).toBe(1_000);
    const rest = items.filter(({ input }) => input !== 1_500);
    const runs = await pawl.startMany(echo, rest, { queue });
    expect(runs).toHaveLength(2_999);
    expect(runs.slice(0, 1_000).every(({ id }) => ids.has(id))).toBe(true);
    ids.clear();
    for await (const run of pawl.listAll({ queue, limit: 1_000 })) ids.add(run.id);
    expect(ids.size).toBe(2_999);
  });

  test("from two callers with the same keys are one set of runs", async ({ open, queue }) => {
    const pawl = open(place);
    const items = upTo(2_000).map((input) => ({ input, key: `${queue} ${input}` }));
    const backwards = [...items].reverse();
    const [left, right] = await Promise.all([
      pawl.startMany(echo, items, { queue }),
      pawl.startMany(echo, backwards, { queue }),
    ]);
    expect([...right].reverse().map(({ id }) => id)).toEqual(left.map(({ id }) => id));
  });
});

test("many runs in a caller's transaction are all there with the commit, or none", async ({
  open,
  pool,
  queue,
}) => {
  const pawl = open();
  const client = await pool.connect();
  for (const end of ["rollback", "commit"]) {
    await client.query("begin");
    await pawl.startMany(
      echo,
      upTo(2_500).map((input) => ({ input })),
      { queue, tx: client },
    );
    expect((await pawl.list({ queue })).runs).toEqual([]);
    await client.query(end);
  }
  client.release();
  let count = 0;
  for await (const _ of pawl.listAll({ queue, limit: 1_000 })) count += 1;
  expect(count).toBe(2_500);
});

test("many runs are started without keeping the process from anything else", async ({ open }) => {
  const pawl = open("memory");
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 0);
  const items = upTo(20_000).map((input) => ({ input }));
  const starting = pawl.startMany(echo, items);
  items.length = 0;
  expect(await starting).toHaveLength(20_000);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
});

test("a hundred thousand runs are started in one call", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema });
  await pawl.migrate();
  const items = upTo(100_000).map((input) => ({ input, key: `key ${input}` }));
  const heap = process.memoryUsage().heapUsed;
  const began = performance.now();
  const runs = await pawl.startMany(echo, items, { queue: "bulk" });
  const seconds = (performance.now() - began) / 1_000;
  const megabytes = (process.memoryUsage().heapUsed - heap) / 1e6;
  if (process.env["PAWL_REPORT"] !== undefined) console.log({ seconds, megabytes });
  expect(new Set(runs.map(({ id }) => id)).size).toBe(100_000);
  expect((await pawl.get(runs[99_999]!.id))!.input).toBe(99_999);
  // As the planner knows it, give or take.
  expect((await pawl.counts()).pending).toMatchObject({ isExact: false });
  expect(await pawl.backlog()).toMatchObject([{ queue: "bulk", count: 10_000, isExact: false }]);
}, 120_000);
