import { randomBytes } from "node:crypto";
import type pg from "pg";
import { describe, expect } from "vitest";
import { createPawl, workflow, type Pawl } from "../../src/index.ts";
import { createTcpProxy } from "../postgres/tcp-proxy.ts";
import { eventually } from "./eventually.ts";
import { type Scene, test } from "./scene.ts";

const echo = workflow({ name: "echo", version: 1 }, async (ctx, word: string) => {
  await ctx.step("hear", () => "heard");
  await ctx.waitForSignal("go");
  return ctx.step("say", () => word);
});

/** What happens to the role, and how it is mended. */
const faults: Readonly<Record<string, readonly [harm: string, cure: string]>> = {
  "its password is changed": ["alter role {role} password 'new'", "alter role {role} password 'old'"],
  "its role may not log in": ["alter role {role} nologin", "alter role {role} login"],
  "the server has no connection left for it": [
    "alter role {role} connection limit 0",
    "alter role {role} connection limit -1",
  ],
  "the server is a standby that only reads": [
    "alter role {role} set default_transaction_read_only = on",
    "alter role {role} reset default_transaction_read_only",
  ],
  "the server gives statements no time": [
    "alter role {role} set statement_timeout = '1ms'",
    "alter role {role} reset statement_timeout",
  ],
};

describe("a worker and a client outlive it, and go on by themselves, when", { timeout: 60_000 }, () => {
  for (const [what, [harm, cure]] of Object.entries(faults)) {
    test(what, async ({ scene }) => {
      const { role, url } = await createRole(scene);
      const pawl = await startWorker(scene, url);
      const befall = async (sql: string): Promise<void> => {
        await scene.pool.query(sql.replaceAll("{role}", role));
        await terminate(scene.pool, role);
      };
      await goThrough(
        scene,
        pawl,
        () => befall(harm),
        () => befall(cure),
      );
    });
  }

  test("the server's name is not known", async ({ scene }) => {
    const pawl = scene.own(createPawl({ url: "postgres://nobody@pawl.invalid/none", schema: scene.schema }));
    await expect(pawl.start(echo, "lost")).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await expect(pawl.worker({ workflows: [echo] }).start()).rejects.toMatchObject({
      code: "STORE_UNAVAILABLE",
    });
  });

  test("its connections go dead without a word", async ({ scene }) => {
    const proxy = await createTcpProxy(scene.url);
    scene.own({ [Symbol.asyncDispose]: () => proxy.close() });
    const pawl = await startWorker(scene, proxy.url);
    await goThrough(
      scene,
      pawl,
      () => proxy.stall(),
      () => {},
    );
  });
});

/** Runs that were there before, and such as came meanwhile, end once the fault is over. */
async function goThrough(scene: Scene, pawl: Pawl, harm: () => unknown, cure: () => unknown): Promise<void> {
  const before = await pawl.start(echo, "before");
  const awaited = before.result({ signal: AbortSignal.timeout(40_000) });
  await eventually(() => statusOf(scene, before.id)).toBe("waiting");
  await harm();
  // This one knows a way round.
  const meanwhile = await scene.pawl.start(echo, "meanwhile");
  for (const run of [before, meanwhile]) await scene.pawl.signal(run.id, "go");
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  await cure();

  const curedAt = performance.now();
  expect(await awaited).toBe("before");
  expect(await meanwhile.result({ signal: AbortSignal.timeout(20_000) })).toBe("meanwhile");
  const after = await pawl.start(echo, "after");
  await after.signal("go");
  expect(await after.result({ signal: AbortSignal.timeout(20_000) })).toBe("after");
  console.info(`outage: all went on within ${Math.round(performance.now() - curedAt)} ms`);
}

async function startWorker(scene: Scene, url: string): Promise<Pawl> {
  const pawl = scene.connect(url);
  const worker = pawl.worker({ workflows: [echo] });
  scene.own({ [Symbol.asyncDispose]: () => worker.stop({ timeout: 0 }) });
  await worker.start();
  return pawl;
}

async function createRole(scene: Scene): Promise<{ readonly role: string; readonly url: string }> {
  const role = `pawl_${randomBytes(6).toString("hex")}`;
  await scene.pool.query(`create role ${role} login password 'old'`);
  await scene.pawl.migrate({ grantTo: role });
  scene.own({
    async [Symbol.asyncDispose]() {
      await scene.pool.query(`drop owned by ${role}`);
      await scene.pool.query(`drop role ${role}`);
    },
  });
  const url = new URL(scene.url);
  url.username = role;
  url.password = "old";
  return { role, url: url.href };
}

async function terminate(pool: pg.Pool, role: string): Promise<void> {
  await pool.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", [role]);
}

async function statusOf({ pool, schema }: Scene, runId: string): Promise<string> {
  const { rows } = await pool.query<{ status: string }>(`select status from ${schema}.runs where id = $1`, [
    runId,
  ]);
  return rows[0]!.status;
}
