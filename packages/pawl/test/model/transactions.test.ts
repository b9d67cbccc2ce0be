import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { describe, expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { replay, test, upTo } from "./model-test.ts";

const once = { attempts: 1 } as const;

async function createTable(pool: Pool): Promise<{ name: string; rows(): Promise<readonly string[]> }> {
  const name = `peers_${randomBytes(6).toString("hex")}`;
  await pool.query(`create table ${name} (value text primary key)`);
  return {
    name,
    async rows() {
      const { rows } = await pool.query<{ value: string }>(`select value from ${name} order by value`);
      return rows.map(({ value }) => value);
    },
  };
}

/** Transactions of DBOS. */
describe("a transaction", () => {
  test("of runs that are started many times under one key commits once", async ({ open, queue, pool }) => {
    const table = await createTable(pool);
    let calls = 0;
    const job = workflow({ name: "job", version: 1, queue }, async (ctx, value: string) =>
      ctx.transaction("insert", async (tx) => {
        calls += 1;
        await tx.query(`insert into ${table.name} values ($1)`, [value]);
        return value;
      }),
    );
    const pawl = open();
    await replay(pawl, queue, [job]);
    const runs = await Promise.all(upTo(5).map(() => pawl.start(job, "a", { key: queue })));
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(upTo(5).map(() => "a"));
    expect(await table.rows()).toEqual(["a"]);
    expect(calls).toBe(1);
  });

  test("that has committed is not repeated when the run is tried again", async ({ open, queue, pool }) => {
    const table = await createTable(pool);
    const job = workflow({ name: "job", version: 1, queue, retry: { initial: 0 } }, async (ctx) => {
      await ctx.transaction("insert", (tx) =>
        tx.query(`insert into ${table.name} values ('a')`).then(() => {}),
      );
      if (ctx.run.attempt < 3) throw new Error("after the commit");
      await ctx.transaction("insert", (tx) =>
        tx.query(`insert into ${table.name} values ('b')`).then(() => {}),
      );
    });
    const pawl = open();
    await replay(pawl, queue, [job]);
    await (await pawl.start(job)).result();
    expect(await table.rows()).toEqual(["a", "b"]);
  });

  test("that throws leaves nothing, and its error can be caught", async ({ open, queue, pool }) => {
    const table = await createTable(pool);
    const job = workflow({ name: "job", version: 1, queue, retry: once }, async (ctx) => {
      const told = await ctx
        .transaction("insert", async (tx) => {
          await tx.query(`insert into ${table.name} values ('a')`);
          await tx.query(`insert into ${table.name} values ('a')`);
        })
        .catch((error: unknown) => (error as { code: string }).code);
      await ctx.transaction("insert", (tx) =>
        tx.query(`insert into ${table.name} values ('b')`).then(() => {}),
      );
      await ctx.sleep(1);
      return told;
    });
    const pawl = open();
    await replay(pawl, queue, [job]);
    expect(await (await pawl.start(job)).result()).toBe("23505");
    expect(await table.rows()).toEqual(["b"]);
  });

  // DBOS: a failed query in a transaction whose function goes on
  test("whose function swallowed a failed query has not succeeded", async ({ open, queue, pool }) => {
    const table = await createTable(pool);
    const job = workflow({ name: "job", version: 1, queue, retry: once }, async (ctx) =>
      ctx.transaction("insert", async (tx) => {
        await tx.query(`insert into ${table.name} values ('a')`);
        await tx.query("select 1 / 0").catch(() => {});
        return "fine";
      }),
    );
    const pawl = open();
    await replay(pawl, queue, [job]);
    await expect((await pawl.start(job)).result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "TRANSACTION_ABORTED" },
    });
    expect(await table.rows()).toEqual([]);
  });

  // DBOS: parallel workflows that conflict all succeed in the end
  test("that conflicts with others is tried again until it commits", async ({ open, queue, pool }) => {
    const table = await createTable(pool);
    await pool.query(`insert into ${table.name} values ('0')`);
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) =>
      ctx.transaction(
        "count",
        async (tx) => {
          const { rows } = await tx.query<{ value: string }>(`select value from ${table.name}`);
          await tx.query(`update ${table.name} set value = $1`, [String(Number(rows[0]!.value) + 1)]);
        },
        { isolation: "serializable" },
      ),
    );
    const pawl = open();
    await replay(pawl, queue, [job]);
    const runs = await pawl.startMany(
      job,
      upTo(10).map(() => ({})),
    );
    await Promise.all(runs.map((run) => run.result()));
    expect(await table.rows()).toEqual(["10"]);
  });
});
