import type pg from "pg";
import { aesGcmCodec, createPawl, dag, workflow, type Pawl } from "../../src/index.ts";
import { createPostgresStore } from "../../src/postgres/postgres-store.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

const bill = workflow({ name: "bill", version: 1 }, async (ctx, amount: number) =>
  ctx.step("charge", () => ({ amount })),
);
const order = workflow({ name: "order", version: 2 }, async (ctx, amount: number) => {
  await ctx.step("reserve", () => "shelf 4");
  const billed = await ctx.call(bill, amount);
  const shipped = await ctx.waitForSignal("shipped", { timeout: "7d" });
  await ctx.sleep(10);
  return { billed, shipped };
});
const broken = workflow({ name: "broken", version: 1, retry: { attempts: 1 } }, async (ctx) => {
  await ctx.step("pay", () => {
    throw Object.assign(new Error("The card was declined"), { code: "CARD_DECLINED" });
  });
});
const flaky = workflow({ name: "flaky", version: 1, retry: { attempts: 2, initial: "1h" } }, async () => {
  throw Object.assign(new Error("Too busy"), { code: "BUSY" });
});
const nap = workflow({ name: "nap", version: 1 }, async (ctx) => {
  await ctx.sleep(ctx.patch("longer") ? "1d" : "1h");
});
const load = workflow({ name: "load", version: 1 }, async (ctx) => {
  await ctx.publish("rows", 3);
  await ctx.stream("rows").write("first");
  return "loaded";
});
const mail = workflow({ name: "mail", version: 1, queue: "mail" }, async () => "sent");
const report = workflow({ name: "report", version: 1 }, async (ctx) => {
  await ctx.call(mail);
});
const survey = workflow({ name: "survey", version: 1 }, async (ctx) => {
  await ctx.step("ask", () => "asked");
  await ctx.waitForSignal("answer");
});
const changedSurvey = workflow({ name: "survey", version: 1 }, async (ctx) => {
  await ctx.step("ask kindly", () => "asked");
  await ctx.waitForSignal("answer");
});

const graph = dag({ name: "graph", version: 1 }, (g) => {
  const billed = g.node("bill", bill, 1);
  g.node("never", bill, 2, { after: [billed], when: () => false });
});

export interface MixedRuns {
  readonly pawl: Pawl;
  readonly ids: Readonly<Record<MixedName, string>>;
  close(): Promise<void>;
}

type MixedName =
  | "completed"
  | "delivered"
  | "shipping"
  | "failed"
  | "retry"
  | "sleeping"
  | "paused"
  | "cancelled"
  | "delayed"
  | "crashed"
  | "unserved"
  | "parent"
  | "blocked"
  | "sealed"
  | "sealedFailed"
  | "exporting";

/** Runs in every state, made as users and crashes make them, with a worker that lives and one that died. */
export async function mixRuns(pool: pg.Pool, schema: string): Promise<MixedRuns> {
  const pawl = createPawl({ pool, schema, listen: false });
  await pawl.migrate();
  const crashed = await pawl.start(load, undefined, { key: "load:1" });
  await dieHolding(pool, schema, "load");

  const completed = await pawl.start(order, 12, { key: "order:1", tags: ["customer:42"] });
  await completed.signal("shipped", { carrier: "dhl" }, { idempotencyKey: "hook-1" });
  const shipping = await pawl.start(order, 13, { key: "order:2", tags: ["customer:42", "vip"] });
  const delivered = await pawl.start(order, 15);
  const failed = await pawl.start(broken, undefined, { tags: ["customer:42"] });
  const retry = await pawl.start(flaky);
  const sleeping = await pawl.start(nap);
  const paused = await pawl.start(nap);
  const cancelled = await pawl.start(nap);
  const delayed = await pawl.start(nap, undefined, { delay: "2h" });
  const unserved = await pawl.start(mail);
  const parent = await pawl.start(report);
  const blocked = await pawl.start(survey);
  await pawl.start(graph);
  const workflows = [bill, order, broken, flaky, nap, load, report, graph];
  await pawl.worker({ workflows: [...workflows, survey] }).runUntilIdle({ linger: "1s" });

  await delivered.signal("shipped", { carrier: "gls" });
  await paused.pause();
  await cancelled.cancel("changed my mind");
  await blocked.signal("answer", "yes");
  await pawl.worker({ workflows: [...workflows, changedSurvey] }).runUntilIdle({ linger: "1s" });
  // So that it stays where it is for as long as somebody looks.
  await pool.query(
    `update ${schema}.parked set due_at = due_at + interval '2 minutes' where reason = 'blocked'`,
  );

  const codec = aesGcmCodec({ keys: [{ id: "1", key: Buffer.alloc(32, "a key") }] });
  await using vault = createPawl({ pool, schema, listen: false, codec });
  const sealed = await vault.start(order, 14);
  await sealed.signal("shipped", { carrier: "ups" });
  const sealedFailed = await vault.start(broken);
  await vault.worker({ workflows }).runUntilIdle({ linger: "1s" });

  const halt = await exportForLong(pawl);
  const runs = {
    completed,
    delivered,
    shipping,
    failed,
    retry,
    sleeping,
    paused,
    cancelled,
    delayed,
    crashed,
  };
  const rest = { unserved, parent, blocked, sealed, sealedFailed, exporting: halt.run };
  const ids = Object.fromEntries(Object.entries({ ...runs, ...rest }).map(([name, { id }]) => [name, id]));
  return {
    pawl,
    ids: ids as Record<MixedName, string>,
    async close() {
      halt.end();
      await pawl.close();
    },
  };
}

/** Claims a run of this workflow as a worker that is not heard of any more. */
export async function dieHolding(pool: pg.Pool, schema: string, name: string): Promise<string> {
  const store = createPostgresStore({
    pool,
    schema,
    listen: false,
    timers: systemTimers,
    random: systemRandom,
  });
  const workerId = "00000000-0000-7000-8000-00000000dead";
  const place = { host: "attic", pid: 13, queues: ["default"], concurrency: 1 };
  await store.registerWorker({ id: workerId, leaseMs: 15_000, ...place, workflows: [`${name}@1`] });
  const lane = { queue: "default", workflow: name, version: 1, crashLimit: 3, after: null };
  await store.claimRuns({ workerId, lanes: [lane], limit: 1, suspects: false, begin: true });
  await pool.query(
    `update ${schema}.worker set heard_at = heard_at - interval '1 hour' where id = '${workerId}'`,
  );
  await store.close();
  return workerId;
}

/** Lets a worker execute a step until it is told to end, and waits until the worker has said so. */
async function exportForLong(pawl: Pawl) {
  let end = (): void => {};
  const exporting = workflow({ name: "export", version: 1, queue: "exports" }, async (ctx) => {
    await ctx.step("write file", () => new Promise<void>((resolve) => (end = resolve)));
  });
  const settings = { queues: ["exports"], heartbeat: 50, lease: "30s", sampleInterval: 0 } as const;
  await pawl.worker({ workflows: [exporting], ...settings }).start();
  const run = await pawl.start(exporting);
  while (!(await pawl.workers()).some((worker) => worker.longSteps.length > 0 && worker.sample?.held === 1)) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { run, end: () => end() };
}
