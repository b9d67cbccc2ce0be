import { expect } from "vitest";
import { workflow } from "../../src/index.ts";
import { held } from "./held-transactions.ts";
import { test } from "./transaction-test.ts";

test("a transaction that is about to win a race leaves a signal to whoever waits next", async ({ shop }) => {
  const { on, isThere, letGo } = held(shop);
  const sell = workflow({ name: "sell", version: 1 }, async (ctx) => {
    const first = await ctx.race({
      sold: ctx.transaction("record", () => "sold", { on }),
      asked: ctx.waitForSignal("ask"),
    });
    return [first.winner, await ctx.waitForSignal("ask", { timeout: "5s" })];
  });
  await shop.work([sell]);
  const run = await shop.pawl.start(sell);
  await isThere;
  await run.signal("ask", "what?");
  // The holder has read it, whatever it makes of it.
  const told = `select told from ${shop.schema}.lease where run_id = $1`;
  await expect
    .poll(async () => (await shop.pool.query<{ told: boolean }>(told, [run.id])).rows[0]?.told)
    .toBe(false);
  letGo();
  expect(await run.result()).toEqual(["sold", "what?"]);
});

test("a wait in a race gets its signal when a transaction that was about to win rolls back", async ({
  shop,
}) => {
  const { on, isThere, letGo } = held(shop);
  const sell = workflow({ name: "sell", version: 1 }, async (ctx) => {
    const first = await ctx.race({
      sold: ctx.transaction(
        "record",
        async (tx) => {
          await (tx as { query(text: string): Promise<unknown> }).query("select 1 / 0").catch(() => {});
        },
        { on, retry: { attempts: 2, initial: "1h" } },
      ),
      asked: ctx.waitForSignal("ask"),
    });
    return first;
  });
  await shop.work([sell]);
  const run = await shop.pawl.start(sell);
  await isThere;
  await run.signal("ask", "what?");
  letGo();
  expect(await run.result()).toEqual({ winner: "asked", value: "what?" });
});
