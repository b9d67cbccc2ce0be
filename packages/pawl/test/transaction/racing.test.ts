import { expect } from "vitest";
import { withPg } from "../../src/adapters/index.ts";
import { workflow, type Transactor } from "../../src/index.ts";
import { test, type Shop } from "./transaction-test.ts";

function promiseOf<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((keep) => {
    resolve = keep;
  });
  return { promise, resolve };
}

/** Transactions that stand still right before their record is sent, until they are let go. */
function held(shop: Shop): {
  readonly on: Transactor<unknown>;
  readonly isThere: Promise<void>;
  readonly letGo: () => void;
} {
  const real = withPg(shop.pool);
  const there = promiseOf<void>();
  const gone = promiseOf<void>();
  const on: Transactor<unknown> = {
    ...real,
    begin: (work, options) =>
      real.begin(
        (tx, handle) =>
          work(tx, {
            async query(text, values) {
              if (text.includes("record_in_transaction")) {
                there.resolve();
                await gone.promise;
              }
              return handle.query(text, values);
            },
          }),
        options,
      ),
  };
  return { on, isThere: there.promise, letGo: () => gone.resolve() };
}

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
