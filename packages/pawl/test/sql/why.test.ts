import { test } from "pawl-test-support";
import type pg from "pg";
import { describe, expect } from "vitest";
import { createPawl, workflow, type Pawl } from "../../src/index.ts";
import { dieHolding } from "./mixed-runs.ts";

const instant = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`;
const words = (text: string): RegExp => new RegExp(`^${text.replaceAll("…", instant)}$`);

const plain = workflow({ name: "plain", version: 1 }, async () => "done");
const stubborn = workflow({ name: "stubborn", version: 3, retry: { attempts: 2 } }, async () => {
  throw new Error("Not now");
});
const patient = workflow({ name: "patient", version: 1 }, async (ctx) => {
  await Promise.race([ctx.waitForSignal("paid"), ctx.waitForSignal("refused"), ctx.call(plain)]);
});
const late = workflow({ name: "late", version: 1, timeout: "1h" }, async (ctx) => {
  await ctx.waitForSignal("never");
});

async function why(pool: pg.Pool, schema: string, run: { readonly id: string }): Promise<string | null> {
  const { rows } = await pool.query<{ why: string | null }>(`select ${schema}.why($1) as why`, [run.id]);
  return rows[0]!.why;
}

async function runUntilIdle(pawl: Pawl): Promise<void> {
  await pawl.worker({ workflows: [stubborn, patient, late] }).runUntilIdle();
}

describe("a run that does not go on says why", () => {
  test("nobody can execute it", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    const run = await pawl.start(plain, undefined, { queue: "mail" });
    expect(await why(pool, schema, run)).toBe('a worker for plain@1 on queue "mail": there is none');
    // A worker of another queue, and one of another version, are of no use.
    await pawl.worker({ workflows: [plain] }).start();
    const other = workflow({ name: "plain", version: 2, queue: "mail" }, async () => "done");
    await pawl.worker({ workflows: [other], queues: ["mail"] }).start();
    expect(await why(pool, schema, run)).toBe('a worker for plain@1 on queue "mail": there is none');
  });

  test("the workers are busy", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    let end = (): void => {};
    const slow = workflow({ name: "slow", version: 1 }, async (ctx) => {
      await ctx.step("export", () => new Promise<void>((resolve) => (end = resolve)));
    });
    const worker = pawl.worker({ workflows: [slow], concurrency: 1, heartbeat: 50, lease: "30s" });
    const first = await pawl.start(slow);
    const second = await pawl.start(slow, undefined, { priority: 1 });
    await worker.start();
    const step = words(
      String.raw`worker \S+ on host \S+ \(pid ${process.pid}\), which has held it since …; step export since …`,
    );
    await expect.poll(() => why(pool, schema, first), { timeout: 10_000 }).toMatch(step);
    expect(await why(pool, schema, second)).toMatch(
      words('its turn since …: one worker lives for slow@1 on queue "default"'),
    );
    end();
  });

  test("its worker died", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    const run = await pawl.start(plain);
    const worker = await dieHolding(pool, schema, "plain");
    expect(await why(pool, schema, run)).toMatch(
      words(
        String.raw`another worker to take it over: worker ${worker} on host attic \(pid 13\) was last heard of at …`,
      ),
    );
  });

  test("its queue is paused", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    const run = await pawl.start(plain);
    await pool.query(`insert into ${schema}.queue (name, paused_at) values ('default', now())`);
    expect(await why(pool, schema, run)).toBe('a resume of queue "default"');
  });

  test("it is to start later, to be tried again, or to be resumed", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    const delayed = await pawl.start(plain, undefined, { delay: "1h" });
    const retried = await pawl.start(stubborn);
    const paused = await pawl.start(plain);
    await paused.pause();
    await runUntilIdle(pawl);
    expect(await why(pool, schema, delayed)).toMatch(words("its start at …"));
    expect(await why(pool, schema, retried)).toMatch(words("attempt 2 at …, after Not now"));
    expect(await why(pool, schema, paused)).toMatch(words("a resume: paused since …"));
  });

  test("its code waits for signals, children and its deadline", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    const run = await pawl.start(patient);
    const timed = await pawl.start(late);
    await runUntilIdle(pawl);
    expect(await why(pool, schema, run)).toMatch(/^signal "paid" or signal "refused" or child plain \S{36}$/);
    expect(await why(pool, schema, timed)).toMatch(words('signal "never" or its deadline at …'));
  });

  test("unless it has ended, or is not there", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    const run = await pawl.start(plain);
    await run.cancel();
    expect(await why(pool, schema, run)).toBeNull();
    expect(await why(pool, schema, { id: "00000000-0000-7000-8000-000000000000" })).toBeNull();
  });
});
