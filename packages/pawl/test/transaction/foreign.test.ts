import { describe, expect } from "vitest";
import { completionTableSql, withPg } from "../../src/adapters/index.ts";
import { workflow, type Transactor } from "../../src/index.ts";
import { foreignTest as test } from "./transaction-test.ts";

const once = { attempts: 1 };

/** A library that takes any answer to COMMIT for a good one, and whose transaction fails just before it. */
function careless<Tx>(good: Transactor<Tx>): Transactor<Tx> {
  return {
    ...good,
    checksCommit: false,
    async begin(work, options) {
      const done: unknown[] = [];
      await good
        .begin(async (tx, handle) => {
          done.push(await work(tx, handle));
          await handle.query("select 1 / 0", []).catch(() => {});
        }, options)
        .catch(() => {});
      return done[0] as never;
    },
  };
}

describe("a transaction in another database", () => {
  test("works in memory, where every database is another", async ({ shop, elsewhere }) => {
    await elsewhere.pool.query(completionTableSql());
    const pawl = shop.connect({ memory: true });
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) => {
      await ctx.sleep(10);
      return ctx.transaction(
        "record",
        async (tx) => {
          await tx.query(`insert into ${shop.table} (id) values (1)`);
          return new Map([["sold", 1n]]);
        },
        { on: withPg(elsewhere.pool) },
      );
    });
    await shop.work([sell], pawl);
    expect(await (await pawl.start(sell)).result()).toEqual(new Map([["sold", 1n]]));
    expect(await elsewhere.ids()).toEqual([1]);
  });

  test("says what it is, where that has a Pawl of its own", async ({ shop, elsewhere }) => {
    const other = shop.connect({ url: elsewhere.url });
    await other.migrate();
    let calls = 0;
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", () => (calls += 1), { on: withPg(elsewhere.pool) }),
    );
    await shop.work([sell]);
    await expect((await shop.pawl.start(sell)).result()).rejects.toMatchObject({
      cause: { code: "INVALID_TRANSACTION" },
    });
    expect(calls).toBe(0);
  });

  test("is called again after a conflict, and after a tombstone of somebody else's", async ({
    shop,
    elsewhere,
  }) => {
    await elsewhere.pool.query(completionTableSql());
    let calls = 0;
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction(
        "record",
        async (tx) => {
          calls += 1;
          await tx.query(`insert into ${shop.table} (id) values ($1)`, [calls]);
          if (calls === 1) await tx.query("do $$ begin raise exception 'no' using errcode = '40P01'; end $$");
          if (calls === 2) await elsewhere.pool.query("update pawl_completion set token = gen_random_uuid()");
          return calls;
        },
        { on: withPg(elsewhere.pool, { foreign: true }) },
      ),
    );
    await shop.work([sell]);
    expect(await (await shop.pawl.start(sell)).result()).toBe(3);
    expect(await elsewhere.ids()).toEqual([3]);
  });

  test("that was completed before is not called", async ({ shop, elsewhere }) => {
    await elsewhere.pool.query(completionTableSql());
    let calls = 0;
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) => {
      await ctx.waitForSignal("go");
      return ctx.transaction("record", () => (calls += 1), {
        on: withPg(elsewhere.pool, { foreign: true }),
      });
    });
    // Another worker might have had it while it waited.
    await shop.pawl.worker({ workflows: [sell], stickyRuns: 0 }).start();
    const run = await shop.pawl.start(sell);
    await elsewhere.pool.query(
      `insert into pawl_completion (run_id, step, token, state, result)
       values ($1, 'record', gen_random_uuid(), 'completed', '"by another"')`,
      [run.id],
    );
    await expect.poll(() => run.status()).toBe("waiting");
    await run.signal("go");
    expect(await run.result()).toBe("by another");
    expect(calls).toBe(0);
  });
});

describe("a library that hides a failed COMMIT", () => {
  test("is found out in the database that runs live in", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction(
        "record",
        async (tx) => {
          await tx.query(`insert into ${shop.table} (id) values (1)`);
          return "sold";
        },
        { on: careless(withPg(shop.pool)) },
      ),
    );
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await expect(run.result()).rejects.toMatchObject({ cause: { code: "TRANSACTION_ABORTED" } });
    expect(await shop.ids()).toEqual([]);
    expect(await shop.facts(run.id)).toEqual(["commit_lost record", "step_failed record", "failed"]);
  });

  test("is found out in another", async ({ shop, elsewhere }) => {
    await elsewhere.pool.query(completionTableSql());
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction(
        "record",
        async (tx) => {
          await tx.query(`insert into ${shop.table} (id) values (1)`);
          return "sold";
        },
        { on: careless(withPg(elsewhere.pool, { foreign: true })) },
      ),
    );
    await shop.work([sell]);
    await expect((await shop.pawl.start(sell)).result()).rejects.toMatchObject({
      cause: { code: "TRANSACTION_ABORTED" },
    });
    expect(await elsewhere.ids()).toEqual([]);
  });
});
