import { describe, expect } from "vitest";
import { WireProxy } from "../../../../verify/chaos/wire-proxy.ts";
import { workflow, type Context, type OwnTransaction, type Transactor } from "../../src/index.ts";
import { held } from "./held-transactions.ts";
import { test, type Shop } from "./transaction-test.ts";

const options = { name: "sell", version: 1, retry: { attempts: 1 } } as const;

const insert = ({ table }: Shop, tx: OwnTransaction, id: number): Promise<unknown> =>
  tx.query(`insert into ${table} (id) values ($1)`, [id]);

/** Code from before a change, and code from after it, whose new side begins with a transaction. */
function builds(shop: Shop, on: Transactor<unknown>) {
  const old = async (ctx: Context): Promise<string> => {
    await ctx.step("charge", () => "charge");
    await ctx.waitForSignal("shipped");
    return "old";
  };
  const before = workflow(options, old);
  const after = workflow(options, async (ctx) => {
    if (!ctx.patch("euro")) return old(ctx);
    await ctx.transaction("charge-euro", async (tx) => void (await insert(shop, tx as OwnTransaction, 1)), {
      on,
    });
    return "new";
  });
  return { before, after };
}

describe("a patch before a transaction", () => {
  test("is written together with the transaction, and not before", async ({ shop }) => {
    const { on, isThere, letGo } = held(shop);
    const { after } = builds(shop, on);
    await shop.work([after]);
    const run = await shop.pawl.start(after);
    await isThere;
    expect(await shop.facts(run.id)).toEqual([]);
    letGo();
    expect(await run.result()).toBe("new");
    expect(await shop.facts(run.id)).toEqual(["patched euro", "step_completed charge-euro", "completed"]);
  });

  test("binds nobody if its worker dies: old code may go on, and new code follows it", async ({ shop }) => {
    const { on, isThere, letGo } = held(shop);
    const { before, after } = builds(shop, on);
    const dead = shop.connect();
    await shop.work([after], dead);
    const run = await shop.pawl.start(after);
    await isThere;
    // As its successor does when a worker has expired.
    await shop.pool.query(
      `select ${shop.schema}.retire_worker_v1(0::smallint, worker_id) from ${shop.schema}.lease where run_id = $1`,
      [run.id],
    );
    const old = shop.pawl.worker({ workflows: [before] });
    await old.start();
    await expect.poll(() => shop.facts(run.id)).toContain("step_completed charge");
    letGo();
    await dead.close({ timeout: 0 });
    await old.stop();
    await shop.work([after], shop.connect());
    await run.signal("shipped");
    expect(await run.result()).toBe("old");
    expect(await shop.ids()).toEqual([]);
    expect(await shop.facts(run.id)).not.toContain("patched euro");
  });

  test("leaves what comes while it commits to what follows", async ({ shop }) => {
    const { on, isThere, letGo } = held(shop);
    const sell = workflow(options, async (ctx) => {
      const early = ctx.patch("early");
      const write = async (tx: unknown): Promise<void> => void (await insert(shop, tx as OwnTransaction, 1));
      const sold = ctx.transaction("record", write, { on, isolation: "serializable" });
      await isThere;
      const late = ctx.patch("late");
      letGo();
      await sold;
      await ctx.step("after", () => "after");
      return [early, late];
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    expect(await run.result()).toEqual([true, true]);
    expect(await shop.facts(run.id)).toEqual([
      "patched early",
      "step_completed record",
      "patched late",
      "step_completed after",
      "completed",
    ]);
  });

  const faults = [
    { kind: "lose", first: [] },
    { kind: "cut", first: ["commit_lost record"] },
  ] as const;

  test.for(faults)(
    "is written once where COMMIT gets no answer: $kind",
    async ({ kind, first }, { shop }) => {
      await using proxy = await WireProxy.listen(shop.url);
      const pawl = shop.connect({ url: proxy.url });
      const hits: Promise<unknown>[] = [];
      const sell = workflow(options, async (ctx) => {
        const sides = [ctx.patch("euro"), ctx.patch("dated")];
        await ctx.transaction("record", async (tx) => {
          await insert(shop, tx, 1);
          if (hits.length === 0) hits.push(proxy.inject({ kind, statement: "commit" }));
        });
        return sides;
      });
      await shop.work([sell], pawl);
      const run = await shop.pawl.start(sell);
      expect(await run.result()).toEqual([true, true]);
      await hits[0];
      expect(await shop.ids()).toEqual([1]);
      expect(await shop.facts(run.id)).toEqual([
        ...first,
        "patched euro",
        "patched dated",
        "step_completed record",
        "completed",
      ]);
      await pawl.close();
    },
  );
});
