import { readFileSync } from "node:fs";
import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, workflow, type Pawl, type PawlEvent } from "../src/index.ts";

const packageVersion = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  }
).version;

const part = workflow({ name: "part", version: 1 }, async (ctx, count: number) =>
  ctx.step("double", () => count * 2),
);
const whole = workflow({ name: "whole", version: 3 }, async (ctx) => {
  const [left, right] = await Promise.all([ctx.call(part, 1), ctx.call(part, 2)]);
  await ctx.sleep(20);
  return left + right;
});

async function runUntilIdle(pawl: Pawl): Promise<void> {
  await pawl.migrate();
  const runs = await Promise.all([1, 2, 3].map(() => pawl.start(whole)));
  const later = await pawl.start(part, 1, { delay: "1h" });
  const summary = await pawl.worker({ workflows: [whole, part] }).runUntilIdle({ linger: "1s" });
  expect(summary).toMatchObject({ isIdle: true, completed: 9, failed: 0, released: 0, lost: 0 });
  for (const run of runs) expect(await run.status()).toBe("completed");
  expect(await later.status()).toBe("pending");
  expect(await pawl.worker({ workflows: [whole, part] }).runUntilIdle()).toMatchObject({ claimed: 0 });
}

async function eventually<Value>(look: () => Value | undefined | Promise<Value | undefined>): Promise<Value> {
  for (;;) {
    const value = await look();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe("running until idle", () => {
  test("works in memory", async () => {
    await using pawl = createPawl({ memory: true });
    await runUntilIdle(pawl);
  });

  test("works on Postgres", async ({ database, schema }) => {
    await using pawl = createPawl({ url: database.url, schema });
    await runUntilIdle(pawl);
  });

  test("works on Postgres without notifications", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false });
    await runUntilIdle(pawl);
  });
});

describe("workers", () => {
  test("are listed with what they can do, how they fare and what runs for long", async ({ pool, schema }) => {
    let open = (): void => {};
    const slow = workflow({ name: "slow", version: 2 }, async (ctx) => {
      await ctx.step("export", () => new Promise<void>((resolve) => (open = resolve)));
    });
    await using pawl = createPawl({ pool, schema, autoMigrate: true });
    const settings = { heartbeat: 50, lease: "5s", sampleInterval: 0 } as const;
    const worker = pawl.worker({ workflows: [slow, part], concurrency: 7, ...settings });
    await worker.start();
    const run = await pawl.start(slow);
    const busy = await eventually(async () =>
      (await pawl.workers()).find((seen) => seen.longSteps.length > 0),
    );
    expect(busy).toMatchObject({
      isAlive: true,
      pid: process.pid,
      queues: ["default"],
      workflows: ["slow@2", "part@1"],
      concurrency: 7,
      leaseMs: 5_000,
      settings: {
        pawl: packageVersion,
        platform: `node ${process.versions.node}`,
        heartbeatMs: 50,
        pollMs: 1_000,
      },
      endedAt: null,
      longSteps: [{ runId: run.id, step: "export", beganAt: expect.any(Date) as Date }],
      sample: { held: 1, at: expect.any(Date) as Date },
    });
    expect(busy.sample!.memoryBytes).toBeGreaterThan(1_000_000);
    expect(busy.sample!.cpuRatio).toBeGreaterThanOrEqual(0);
    open();
    await run.result();
    await eventually(async () => (await pawl.workers()).find((seen) => seen.longSteps.length === 0));
    await worker.stop();
    expect(await pawl.workers()).toMatchObject([{ isAlive: false, endedAt: expect.any(Date) as Date }]);
    const { rows } = await pool.query(`select count(*)::integer as count from ${schema}.worker_sample`);
    expect((rows[0] as { readonly count: number }).count).toBeGreaterThan(1);
  });

  test("one that blocks the event loop is told of, with the step that did", async () => {
    const events: PawlEvent[] = [];
    await using pawl = createPawl({ memory: true, onEvent: (event) => events.push(event) });
    const heavy = workflow({ name: "heavy", version: 1 }, async (ctx) => {
      await ctx.step("crunch numbers", () => {
        const until = performance.now() + 500;
        while (performance.now() < until);
      });
    });
    await pawl.worker({ workflows: [heavy], lease: 900, heartbeat: 50 }).start();
    const run = await pawl.start(heavy);
    await run.result();
    const blocked = await eventually(() => events.find(({ kind }) => kind === "worker.blocked_loop"));
    expect(blocked).toMatchObject({ steps: [{ runId: run.id, step: "crunch numbers" }] });
  });

  test("install no signal handlers", async () => {
    const before = process.eventNames().map((name) => [name, process.listenerCount(name)]);
    await using pawl = createPawl({ memory: true });
    const worker = pawl.worker({ workflows: [part] });
    await worker.start();
    expect(process.eventNames().map((name) => [name, process.listenerCount(name)])).toEqual(before);
    expect(process.listenerCount("SIGTERM")).toBe(0);
    expect(process.listenerCount("SIGINT")).toBe(0);
  });

  test("closing passes its timeout on, and a second call shortens the wait", async () => {
    const stuck = workflow({ name: "stuck", version: 1 }, async (ctx) => {
      await ctx.step("hang", () => new Promise<void>(() => {}));
    });
    const events: PawlEvent[] = [];
    const pawl = createPawl({ memory: true, onEvent: (event) => events.push(event) });
    await pawl.worker({ workflows: [stuck] }).start();
    await pawl.start(stuck);
    await eventually(() => events.find(({ kind }) => kind === "run.claimed"));
    const closing = pawl.close({ timeout: "1h" });
    await pawl.close({ timeout: 10 });
    await closing;
    expect(events.at(-1)).toMatchObject({ kind: "worker.stopped" });
    await expect(pawl.close({ timout: 1 } as never)).rejects.toThrow('Did you mean "timeout"?');
  });
});

describe("health", () => {
  test("says that all is well", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, autoMigrate: true });
    await pawl.migrate();
    await pawl.worker({ workflows: [part] }).start();
    const health = await eventually(async () => {
      const seen = await pawl.health();
      return seen.listening === "live" ? seen : undefined;
    });
    expect(health).toMatchObject({
      ok: true,
      isUpToDate: true,
      pooled: false,
      workers: { alive: 1 },
      error: null,
    });
    expect(health.latencyMs).toBeGreaterThanOrEqual(0);
    expect(Math.abs(health.clockOffsetMs!)).toBeLessThan(1_000);
    // The tests' own cluster runs without them.
    expect(health.warnings.every((warning) => warning.includes("is off"))).toBe(true);
  });

  test("says that the schema is missing, or of another version", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema });
    expect(await pawl.health()).toMatchObject({
      ok: false,
      schemaVersion: 0,
      error: { code: "SCHEMA_MISSING" },
    });
    const { version } = await pawl.migrate();
    await pool.query(
      `insert into ${schema}.migration (version, name, is_breaking) values (${version + 1}, 'later', true)`,
    );
    expect(await pawl.health()).toMatchObject({
      ok: false,
      isUpToDate: false,
      error: { code: "SCHEMA_TOO_NEW" },
    });
    await pool.query(`delete from ${schema}.migration where version >= ${version}`);
    expect(await pawl.health()).toMatchObject({ ok: false, error: { code: "SCHEMA_TOO_OLD" } });
  });

  test("warns of settings that lose what was acknowledged", async ({ database, schema }) => {
    await using pawl = createPawl({ url: `${database.url}?options=-c%20synchronous_commit%3Doff`, schema });
    await pawl.migrate();
    const { warnings } = await pawl.health();
    expect(warnings.some((warning) => warning.includes("synchronous_commit is off"))).toBe(true);
  });

  test("does not throw where there is no database", async () => {
    await using pawl = createPawl({ url: "postgres://127.0.0.1:1/none" });
    expect(await pawl.health()).toMatchObject({
      ok: false,
      latencyMs: null,
      error: { code: "STORE_UNAVAILABLE" },
    });
  });

  test("says so in memory too", async () => {
    await using pawl = createPawl({ memory: true });
    expect(await pawl.health()).toMatchObject({ ok: true, listening: "live", warnings: [] });
  });
});
