import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { z } from "zod";
import { createPawl, workflow } from "../../src/index.ts";

const count = workflow({ name: "count", version: 1 }, async (_ctx, n: number) => n);
const parsed = workflow(
  { name: "parsed", version: 1, input: z.object({ n: z.number() }) },
  async (_ctx, { n }) => n,
);

/** Items with a key each: `k0`, `k1`, … */
const items = (length: number) => Array.from({ length }, (_, n) => ({ input: n, key: `k${n}` }));

describe("starting many runs", () => {
  test("answers their handles in order, and the same ones when it is repeated", async ({
    database,
    schema,
  }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const first = await pawl.startMany(count, items(2_500));
    const second = await pawl.startMany(count, items(2_500));
    expect(second.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
    expect(await pawl.get(first[2_345]!.id)).toMatchObject({ input: 2_345, key: "k2345" });
    expect((await pawl.counts()).pending).toEqual({ count: 2_500, isExact: true });
  });

  test("refuses an item at once while another is still looked at, and leaves no rejection behind", async ({
    database,
    schema,
  }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const slowly = workflow(
      {
        name: "slowly",
        version: 1,
        input: z.object({ n: z.number().refine(async (n) => n > 0) }),
      },
      async (_ctx, { n }) => n,
    );
    const rejections: unknown[] = [];
    const note = (error: unknown): void => void rejections.push(error);
    process.on("unhandledRejection", note);
    const wrong = { input: { n: "2" } } as unknown as { readonly input: { readonly n: number } };
    const starts = pawl.startMany(slowly, [{ input: { n: -1 } }, wrong]);
    await expect(starts).rejects.toMatchObject({ code: "INVALID_PAYLOAD", details: { item: 1 } });
    await new Promise((resolve) => void setTimeout(resolve, 20));
    process.off("unhandledRejection", note);
    expect(rejections).toEqual([]);
  });

  test("takes tags as they are at the call", async ({ database, schema }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const tags = ["import", ""];
    const starts = ["t1", "t2"].map((tenant) => {
      tags[1] = tenant;
      return pawl.start(count, 1, { tags });
    });
    const runs = await Promise.all(starts);
    const found = await Promise.all(runs.map(({ id }) => pawl.get(id)));
    expect(found.map((run) => run?.tags)).toEqual([
      ["import", "t1"],
      ["import", "t2"],
    ]);
  });

  test("starts each chunk as a whole: what fails tells how many were started before", async ({
    database,
    schema,
  }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const owner = await pawl.start(count, -1, { key: "k1200" });
    await expect(pawl.startMany(count, items(2_500))).rejects.toMatchObject({
      code: "KEY_CONFLICT",
      details: { key: "k1200", runId: owner.id, started: 1_000 },
    });
    expect((await pawl.counts()).pending.count).toBe(1_001);
    expect((await pawl.list({ key: "k1001" })).runs).toEqual([]);
  });

  test("one wrong item starts none, and the error says which it is", async ({ database, schema }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const wrongInput = [{ input: { n: 1 } }, { input: { n: "2" } as never }];
    await expect(pawl.startMany(parsed, wrongInput)).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
      message: expect.stringContaining("Item 1 of startMany: "),
      details: { item: 1, issues: [expect.objectContaining({ path: "n" })] },
    });
    await expect(
      pawl.startMany(count, [{ input: 1 }, { input: Symbol("2") as never }]),
    ).rejects.toMatchObject({ code: "INVALID_PAYLOAD", details: { item: 1 } });
    await expect(pawl.startMany(count, [{ input: 1 }, { input: 2, priority: 0.5 }])).rejects.toMatchObject({
      code: "INVALID_OPTION",
      details: { what: "startMany's item 1" },
    });
    expect((await pawl.list()).runs).toEqual([]);
  });

  test("what an item says goes before what is said of all", async ({ database, schema }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const at = new Date("2100-01-01T00:00:00Z");
    const [asAll, own] = await pawl.startMany(
      count,
      [{ input: 1 }, { input: 2, at, priority: -1, tags: ["own"] }],
      { delay: "1h", priority: 7, tags: ["all"], queue: "slow" },
    );
    expect(await pawl.get(asAll!.id)).toMatchObject({ priority: 7, tags: ["all"], queue: "slow" });
    expect(await pawl.get(own!.id)).toMatchObject({
      priority: -1,
      tags: ["own"],
      queue: "slow",
      startAt: at,
    });
  });

  test("a key that occurs twice is one run", async ({ database, schema }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const twice = [
      { input: 1, key: "one" },
      { input: 1, key: "one" },
    ];
    const [first, second] = await pawl.startMany(count, twice);
    expect(second!.id).toBe(first!.id);
    const contradiction = [
      { input: 1, key: "two" },
      { input: 2, key: "two" },
    ];
    await expect(pawl.startMany(count, contradiction)).rejects.toMatchObject({ code: "KEY_CONFLICT" });
    expect((await pawl.list({ key: "two" })).runs).toEqual([]);
  });

  test("in a transaction they exist together or not at all", async ({ database, schema, pool }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await pawl.migrate();
    const client = await pool.connect();
    await client.query("begin");
    await pawl.startMany(count, items(1_500), { tx: client });
    await client.query("rollback");
    expect((await pawl.counts()).pending.count).toBe(0);
    await client.query("begin");
    await pawl.startMany(count, items(1_500), { tx: client });
    await client.query("commit");
    client.release();
    expect((await pawl.counts()).pending.count).toBe(1_500);
  });
});
