import { setTimeout as pause } from "node:timers/promises";
import { createPawl, PawlError, workflow } from "pawl";

/** A bank that breaks down once, and knows by its key what it has already done. */
let isUp = false;
const charges = new Map<string, string>();
const bank = {
  async charge(amount: number, idempotencyKey: string): Promise<string> {
    if (!isUp) {
      isUp = true;
      throw new Error("The bank is down");
    }
    const receipt = charges.get(idempotencyKey) ?? `${amount} paid`;
    charges.set(idempotencyKey, receipt);
    return receipt;
  },
};

const order = workflow({ name: "order", version: 1 }, async (ctx, amount: number) => {
  // Three attempts of its own, before the workflow's retry has any part in it.
  const receipt = await ctx.step(
    "charge",
    ({ idempotencyKey, attempt, log }) => {
      log.info("charge", { attempt });
      return bank.charge(amount, idempotencyKey);
    },
    { retry: { attempts: 3, initial: "100ms" } },
  );
  console.log(receipt);

  // One attempt may take 50 ms. Whoever is called hears it by the signal.
  await ctx
    .step("ask", ({ signal }) => pause(60_000, undefined, { signal }), { timeout: "50ms" })
    .catch((error: unknown) => {
      if (!PawlError.is(error, "STEP_TIMED_OUT")) throw error;
      console.log("Nobody answered");
    });

  // The second attempt goes on where the first one was.
  const rows = await ctx.step(
    "export",
    ({ heartbeat, progress, attempt }) => {
      let row = (progress as number | undefined) ?? 0;
      console.log(`Export from row ${row}`);
      for (; row < 100; row++) {
        if (row === 60 && attempt === 1) throw new Error("The disk is full");
        heartbeat(row);
      }
      return row;
    },
    { retry: { attempts: 2, initial: "100ms" } },
  );

  // Must not happen twice, and has no idempotency key: it is not called again if this process dies in it.
  await ctx.step("post letter", () => console.log("Letter posted"), { onCrash: "fail" });
  return { rows };
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [order] }).start();

const run = await pawl.start(order, 100);
console.log(await run.result());
for (const { kind, name } of await run.history()) console.log(kind, name ?? "");
