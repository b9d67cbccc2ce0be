import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { createPawl, workflow, type ListFilter, type Pawl, type Run } from "../../src/index.ts";
import { createGate, eventually, places, test, upTo, work } from "./job-test.ts";

const echo = workflow({ name: "echo", version: 1 }, async (_, input: number) => input);

/** All pages of ten, one after the other. */
async function readPages(pawl: Pawl, filter: ListFilter): Promise<readonly Run[]> {
  const runs: Run[] = [];
  for (let before = filter.before; ;) {
    const page = await pawl.list({ ...filter, limit: 10, ...(before !== undefined && { before }) });
    expect(page.runs.length).toBeLessThanOrEqual(10);
    runs.push(...page.runs);
    if (page.next === null) return runs;
    before = page.next;
  }
}

const inputs = (runs: readonly Run[]): readonly unknown[] => runs.map(({ input }) => input);

describe.each(places)("lists in %s", (place) => {
  test("come in pages without gap or double, whatever is asked for", async ({ open, queue }) => {
    const pawl = open(place);
    const other = workflow({ name: "other", version: 1 }, async (_, input: number) => {
      if (input % 5 === 0) throw Object.assign(new Error("fifth"), { code: "FIFTH" });
      return input;
    });
    const half = `${queue} half`;
    const tagsOf = (input: number) => [`${queue} ${input % 2}`, `${queue} third ${input % 3}`];
    for (const input of upTo(95)) {
      const options = { tags: tagsOf(input), queue: input < 50 ? queue : half, key: `${queue} ${input}` };
      await pawl.start(input % 4 === 0 ? other : echo, input, { ...options, retry: { attempts: 1 } });
    }
    const all = [...upTo(95)].reverse();
    const anywhere = { tags: [`${queue} 0`] };
    expect(inputs(await readPages(pawl, anywhere))).toEqual(all.filter((input) => input % 2 === 0));
    expect(inputs(await readPages(pawl, { queue }))).toEqual(all.filter((input) => input < 50));
    expect(inputs(await readPages(pawl, { queue, workflow: "other" }))).toEqual(
      all.filter((input) => input < 50 && input % 4 === 0),
    );
    expect(inputs(await readPages(pawl, { tags: tagsOf(3) }))).toEqual(
      all.filter((input) => input % 2 === 1 && input % 3 === 0),
    );
    expect(inputs(await readPages(pawl, { key: `${queue} 17` }))).toEqual([17]);
    expect(inputs(await readPages(pawl, { key: `${queue} 17`, workflow: "other" }))).toEqual([]);
    expect(inputs(await readPages(pawl, { queue: half, status: "pending" }))).toEqual(
      all.filter((input) => input >= 50),
    );

    await pawl.worker({ workflows: [echo, other], queues: [queue] }).runUntilIdle();
    expect(inputs(await readPages(pawl, { queue, status: "completed" }))).toEqual(
      all.filter((input) => input < 50 && input % 20 !== 0),
    );
    expect(inputs(await readPages(pawl, { queue, status: "failed", errorCode: "FIFTH" }))).toEqual([
      40, 20, 0,
    ]);
    expect(inputs(await readPages(pawl, { queue, errorCode: "FIFTH" }))).toEqual([40, 20, 0]);
    expect(inputs(await readPages(pawl, { queue, status: "pending" }))).toEqual([]);
    expect(inputs(await readPages(pawl, { queue, status: "completed", tags: [`${queue} 1`] }))).toEqual(
      all.filter((input) => input < 50 && input % 2 === 1),
    );
  });

  test("are bounded by the time of the start", async ({ open, queue }) => {
    // Ids are made before a run is stored, which takes a while on a busy machine: the gaps are wider than that.
    const pawl = open(place);
    await pawl.start(echo, 1, { queue });
    await pause(1_000);
    const middle = await pawl.start(echo, 2, { queue });
    await pause(1_000);
    await pawl.start(echo, 3, { queue });
    const { createdAt } = (await pawl.get(middle.id))!;
    const soon = new Date(createdAt.getTime() + 500);
    expect(inputs((await pawl.list({ queue, createdBefore: soon })).runs)).toEqual([2, 1]);
    expect(inputs((await pawl.list({ queue, createdAfter: soon })).runs)).toEqual([3]);
    const early = new Date(createdAt.getTime() - 500);
    expect(inputs((await pawl.list({ queue, createdAfter: early, createdBefore: soon })).runs)).toEqual([2]);
  });

  test("show every status by its name", async ({ open, queue }) => {
    const pawl = open(place);
    const gate = createGate();
    const job = workflow(
      { name: "job", version: 1, queue, retry: { attempts: 1 } },
      async (ctx, what: string) => {
        if (what === "failed") throw new Error("no");
        if (what === "running") await ctx.step("wait", () => gate.opened);
        if (what === "waiting" || what === "cancelled") await ctx.sleep("1h");
        return what;
      },
    );
    for (const what of ["failed", "running", "waiting", "completed"]) await pawl.start(job, what);
    await pawl.start(job, "pending", { delay: "1h" });
    await pawl.start(job, "expired", { expiresAt: new Date(0) });
    await pawl.start(job, "timed_out", { deadline: new Date(0) });
    const paused = await pawl.start(job, "paused");
    await paused.pause();
    await (await pawl.start(job, "cancelled")).terminate();
    await work(pawl, { workflows: [job], queues: [queue], lease: "300ms" });
    const statuses = [
      "failed",
      "running",
      "waiting",
      "completed",
      "pending",
      "expired",
      "timed_out",
      "paused",
      "cancelled",
    ] as const;
    for (const status of statuses)
      await eventually(async () => inputs((await pawl.list({ queue, status })).runs)).toEqual([status]);
    gate.open();
  });

  test("of all runs go on while more are started, and give each that was there once", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    await pawl.startMany(
      echo,
      upTo(60).map((input) => ({ input })),
      { queue },
    );
    const seen: unknown[] = [];
    for await (const run of pawl.listAll({ queue, limit: 7 })) {
      seen.push(run.input);
      await pawl.start(echo, 1_000, { queue });
    }
    expect(seen).toEqual([...upTo(60)].reverse());
  });

  test("of all runs can be left early", async ({ open, queue }) => {
    const pawl = open(place);
    await pawl.startMany(
      echo,
      upTo(20).map((input) => ({ input })),
      { queue },
    );
    const seen: unknown[] = [];
    for await (const run of pawl.listAll({ queue, limit: 5 })) {
      seen.push(run.input);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([19, 18, 17]);
  });

  test("of nothing are empty", async ({ open, queue }) => {
    const pawl = open(place);
    expect(await pawl.list({ queue })).toEqual({ runs: [], next: null });
    expect(await pawl.list({ key: queue })).toEqual({ runs: [], next: null });
    expect(await pawl.list({ tags: [queue] })).toEqual({ runs: [], next: null });
    expect(await pawl.deadLetters({ queue })).toEqual({ runs: [], next: null });
  });

  test("are of a hundred runs unless told otherwise", async ({ open, queue }) => {
    const pawl = open(place);
    await pawl.startMany(
      echo,
      upTo(101).map((input) => ({ input })),
      { queue },
    );
    const page = await pawl.list({ queue });
    expect(page.runs).toHaveLength(100);
    expect(inputs((await pawl.list({ queue, before: page.next! })).runs)).toEqual([0]);
  });

  test.for([
    ["a limit of 0", { limit: 0 }],
    ["a limit above 1000", { limit: 1_001 }],
    ["a limit that is no whole number", { limit: 1.5 }],
    ["a status that is none", { status: "done" }],
    ["no tags", { tags: [] }],
    ["a page after no run", { before: "x" }],
    ["an unknown filter", { name: "x" }],
  ] as const)("refuse %s", async ([, filter], { open }) => {
    const pawl = open(place);
    await expect(pawl.list(filter as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(pawl.listAll(filter as never).next()).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});

describe.each(places)("counts in %s", (place) => {
  test("are of every status, and the backlog is of what waits to be claimed", async ({ pool, schema }) => {
    await using pawl = createPawl(place === "memory" ? { memory: true } : { pool, schema });
    await pawl.migrate();
    expect(await pawl.backlog()).toEqual([]);
    const failing = workflow({ name: "failing", version: 1, retry: { attempts: 1 } }, async () => {
      throw new Error("no");
    });
    const unknown = workflow({ name: "unknown", version: 3 }, async () => {});
    await pawl.startMany(
      echo,
      upTo(5).map((input) => ({ input })),
    );
    await pawl.startMany(
      failing,
      upTo(2).map(() => ({})),
    );
    await pawl.startMany(
      unknown,
      upTo(3).map(() => ({})),
    );
    await pawl.start(echo, 1, { delay: "1h" });
    await (await pawl.start(echo, 1, { queue: "side" })).terminate();
    await pawl.start(echo, 1, { queue: "side" });
    const before = await pawl.backlog();
    expect(
      new Set(
        before.map(({ workflow: name, queue, version, count }) => `${name} ${version} ${queue} ${count}`),
      ),
    ).toEqual(new Set(["echo 1 default 5", "failing 1 default 2", "unknown 3 default 3", "echo 1 side 1"]));
    for (const lane of before) {
      expect(lane.isExact).toBe(true);
      expect(Math.abs(lane.oldestAt.getTime() - Date.now())).toBeLessThan(10_000);
    }
    await pawl.worker({ workflows: [echo, failing] }).runUntilIdle();
    const counts = Object.entries(await pawl.counts()).map(([status, { count }]) => [status, count]);
    expect(Object.fromEntries(counts)).toEqual({
      pending: 5,
      running: 0,
      waiting: 0,
      paused: 0,
      blocked: 0,
      completed: 5,
      failed: 2,
      cancelled: 1,
      timed_out: 0,
      expired: 0,
    });
    expect((await pawl.backlog()).map(({ workflow: name, count }) => `${name} ${count}`).sort()).toEqual([
      "echo 1",
      "unknown 3",
    ]);
  });
});
