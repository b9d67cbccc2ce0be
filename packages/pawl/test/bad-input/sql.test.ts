import { createHash, randomUUID } from "node:crypto";
import { test } from "pawl-test-support";
import type pg from "pg";
import { expect } from "vitest";
import { completionTableSql, withPg } from "../../src/adapters/index.ts";
import { createPawl, workflow } from "../../src/index.ts";
import { idle } from "./entries.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

/** Nothing in it repeats, so that it cannot be stored in less. */
function incompressible(length: number): string {
  let text = "";
  for (let n = 0; text.length < length; n++) text += createHash("sha512").update(String(n)).digest("base64");
  return text.slice(0, length);
}

test("a run fails with whatever code its error has, and is found by it", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true });
  const codes = [incompressible(8_000), "é".repeat(200), "'; drop table run; --", "a\nb", "", "x"];
  const fails = workflow(
    { name: "fails", version: 1, retry: { attempts: 1 } },
    async (ctx, index: number) => {
      await ctx.step("throw", () => {
        throw Object.assign(new Error("no"), { code: codes[index] });
      });
    },
  );
  await pawl.worker({ workflows: [fails] }).start();
  for (const [index, code] of codes.entries()) {
    const run = await pawl.start(fails, index);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    if (code === "" || code.length > 255) continue;
    if (Buffer.byteLength(code) > 255) continue;
    expect((await pawl.deadLetters({ errorCode: code })).runs.map(({ id }) => id)).toEqual([run.id]);
    expect(await pawl.retryAll({ errorCode: code, limit: 1 })).toBe(1);
  }
});

test("a transaction in another database may lie as deep in scopes as one likes", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true });
  await pool.query(`create schema ${schema}_own`);
  await pool.query(completionTableSql({ schema: `${schema}_own` }));
  const on = withPg(pool, { foreign: true, schema: `${schema}_own` });
  const deep = workflow({ name: "deep", version: 1 }, async (ctx) => {
    let at = ctx;
    for (let n = 0; n < 40; n++) {
      const part = incompressible(255 * (n + 1)).slice(-255);
      at = await at.scope(part, (inner) => ({ inner })).then(({ inner }) => inner);
    }
    return at.transaction("write", async (client) => (await client.query("select 1 as one")).rows, { on });
  });
  await pawl.worker({ workflows: [deep] }).start();
  expect(await (await pawl.start(deep)).result()).toEqual([{ one: 1 }]);
});

test("a thousand queues with long names are told of at once", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true });
  const items = Array.from({ length: 1_000 }, (_, n) => ({
    queue: `${n} ${"é".repeat(120)}`,
    tags: [`${n}`],
  }));
  const runs = await pawl.startMany(idle, items);
  expect(runs).toHaveLength(1_000);
  expect((await pawl.backlog()).length).toBe(1_000);
  expect(await pawl.cancelAll({ workflow: "idle" })).toBe(1_000);
});

/** What a call of a function in SQL came to: null where it was answered. */
async function stateOf(pool: pg.Pool, text: string, ...values: readonly unknown[]): Promise<string | null> {
  try {
    await pool.query(text, [...values]);
    return null;
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
}

const texts: readonly (string | null)[] = [
  null,
  "",
  "a",
  "x".repeat(255),
  "x".repeat(256),
  incompressible(3_000),
  "'; drop table run; --",
  "👩‍👩‍👧‍👦 \u202e\n",
  "%s",
  "\\",
  "$1",
  "return",
  "default",
];
const jsons: readonly (string | null)[] = [
  null,
  "null",
  "1e400",
  "9007199254740993",
  '{"a":1,"a":2}',
  '{"__proto__":{"polluted":1}}',
  String.raw`"\u0000"`,
  String.raw`"\ud800"`,
  "[".repeat(100) + "]".repeat(100),
  "[".repeat(101) + "]".repeat(101),
  JSON.stringify("x".repeat(1_100_000)),
];
const instants: readonly (string | null)[] = [
  null,
  "infinity",
  "-infinity",
  "4713-01-01 BC",
  "294276-12-31",
  "275760-09-13 00:00:00+00",
  "epoch",
];
const numbers: readonly (number | null)[] = [null, 0, 1, -1, 2 ** 31 - 1, -(2 ** 31)];

test("no junk given to a function in SQL does harm: it is refused with a code of ours, or is right there", async ({
  pool,
  schema,
}) => {
  await using pawl = createPawl({ pool, schema });
  await pawl.migrate();
  const live = await pawl.start(idle, 1, { queue: "nobody" });
  const calls: readonly (readonly [string, ...unknown[]])[] = [
    ...texts.flatMap((text): (readonly [string, ...unknown[]])[] => [
      ["start($1)", text],
      ["start('idle', key => $1)", text],
      ["start('idle', queue => $1)", text],
      ["start('idle', tags => array[$1])", text],
      ["start('idle', key => 'once', on_conflict => $1)", text],
      ["signal($2, $1)", text, live.id],
      ["signal($2, 'word', null, $1)", text, live.id],
      ["signal_or_start($1, 'key', 'word')", text],
      ["signal_or_start('idle', $1, 'word')", text],
      ["signal_or_start('idle', $2, $1)", text, randomUUID()],
      ["signal_or_start('idle', $2, 'word', idempotency_key => $1)", text, randomUUID()],
      ["cancel($2, $1)", text, randomUUID()],
      ["id_of($1)", text],
    ]),
    ...jsons.flatMap((json): (readonly [string, ...unknown[]])[] => [
      ["start('idle', $1::text::json)", json],
      ["signal($2, 'word', $1::text::json)", json, live.id],
      ["signal_or_start('idle', $2, 'word', $1::text::json)", json, randomUUID()],
      ["signal_or_start('idle', $2, 'word', input => $1::text::json)", json, randomUUID()],
    ]),
    ...instants.flatMap((instant): (readonly [string, ...unknown[]])[] => [
      ["start('idle', start_at => $1::text::timestamptz)", instant],
      ["start('idle', expires_at => $1::text::timestamptz)", instant],
      ["start('idle', deadline_at => $1::text::timestamptz)", instant],
      ["signal_or_start('idle', $2, 'word', start_at => $1::text::timestamptz)", instant, randomUUID()],
      ["id_at($1::text::timestamptz)", instant],
    ]),
    ...numbers.flatMap((number): (readonly [string, ...unknown[]])[] => [
      ["start('idle', version => $1)", number],
      ["start('idle', priority => $1)", number],
    ]),
    ["signal(null, 'word')"],
    ["cancel(null)"],
    ["why(null)"],
    ["why($1)", randomUUID()],
    ["why($1)", live.id],
  ];
  const wrong: string[] = [];
  for (const [call, ...values] of calls) {
    const state = await stateOf(pool, `select ${schema}.${call}`, ...values);
    if (state !== null && !state.startsWith("PW"))
      wrong.push(`${call} with ${String(values[0]).slice(0, 40)}: ${state}`);
  }
  expect(wrong).toEqual([]);
  for await (const run of pawl.listAll({ limit: 1_000 })) {
    for (const date of [run.createdAt, run.startAt, run.dueAt, run.expiresAt, run.deadlineAt])
      expect([run.id, date === null || Number.isFinite(date.getTime())]).toEqual([run.id, true]);
    await pawl.cancel(run.id);
    expect(["cancelled", "expired", "timed_out", "running"]).toContain(await pawl.handle(run.id).status());
  }
});
