import { randomBytes } from "node:crypto";
import type pg from "pg";
import { describe, expect, test } from "vitest";
import { createIds, isRunId, shardOf } from "../../src/core/ids.ts";
import { PawlError, ref, type RunHandle, type StartOptions } from "../../src/index.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { confirm, deliver, inTransaction, useShop } from "./shop.ts";

const shop = useShop();

/** Everything that is stored of a new run, but for its id and the instants that differ between two starts. */
const stored = `
  select r.workflow, r.version, r.queue, r.priority, r.input::jsonb, r.input_notes, r.start_at, r.parent_id,
         r.parent_request, r.root_id, r.depth, r.shard, r.detached, r.key is not null as has_key,
         round(extract(epoch from r.expires_at - r.created_at) / 3600) as expires_h,
         round(extract(epoch from r.deadline_at - r.created_at) / 3600) as deadline_h,
         to_jsonb(y) - '{run_id,ready_at,expires_at}'::text[] as ready, y.expires_at = r.expires_at as expires_alike,
         to_jsonb(p) - '{run_id,parked_at}'::text[] as parked,
         k.workflow as key_workflow, k.version as key_version, k.input_hash
    from pawl.run r
    left join pawl.ready y on y.run_id = r.id
    left join pawl.parked p on p.run_id = r.id
    left join pawl.key k on k.run_id = r.id
   where r.id = $1`;
const inboxOf = `
  select m.topic, m.name, m.idempotency_key, m.data::jsonb, m.notes, m.taken_seq, m.shard
    from pawl.inbox m where m.run_id = $1 order by m.sent_at, m.id`;

async function rowsOf(text: string, ...values: readonly unknown[]): Promise<readonly pg.QueryResultRow[]> {
  return (await shop.pool.query(text, [...values])).rows;
}

/** The one value that a call of a function answers. */
async function call(expression: string, ...values: readonly unknown[]): Promise<string> {
  const [row] = await rowsOf(`select ${expression} as answer`, ...values);
  return row!["answer"];
}

const uniqueKey = (): string => `key:${randomBytes(6).toString("hex")}`;
const future = new Date("2100-01-01T00:00:00.123Z");
const tomorrow = new Date(Date.now() + 24 * 3_600_000);
const past = new Date("2001-01-01T00:00:00Z");
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const untyped = ref("confirm", 1);

interface Start {
  readonly what: string;
  readonly input?: unknown;
  readonly options?: StartOptions;
  /** Arguments of `pawl.start`, by name. */
  readonly sql: Readonly<Record<string, unknown>>;
}

const starts: readonly Start[] = [
  { what: "no input", sql: {} },
  { what: "null for an input", input: null, sql: { input: "null" } },
  {
    what: "an object",
    input: { b: [1, 0.5, 1e30], a: "é 🐘" },
    sql: { input: '{"b":[1,0.5,1e30],"a":"é 🐘"}' },
  },
  { what: "a text", input: 'it\'s "so"', sql: { input: '"it\'s \\"so\\""' } },
  { what: "a false", input: false, sql: { input: "false" } },
  { what: "the deepest input", input: JSON.parse(nested(100)), sql: { input: nested(100) } },
  { what: "a queue", options: { queue: "mail/é" }, sql: { queue: "mail/é" } },
  { what: "a priority", options: { priority: -7 }, sql: { priority: -7 } },
  { what: "a later start", options: { at: future }, sql: { start_at: future } },
  { what: "a start that has passed", options: { at: past }, sql: { start_at: past } },
  {
    what: "an expiry",
    options: { expiresIn: "24h" },
    sql: { expires_at: tomorrow },
  },
  { what: "a deadline", options: { timeout: "24h" }, sql: { deadline_at: tomorrow } },
  {
    what: "a key",
    input: { id: 1 },
    options: { key: "from here" },
    sql: { input: '{"id": 1.0}', key: "from SQL" },
  },
  {
    what: "nulls for all that may be left out",
    sql: { input: null, version: null, queue: null, priority: null },
  },
];

function startInSql(workflow: string, given: Readonly<Record<string, unknown>>): Promise<string> {
  const names = Object.keys(given);
  const more = names.map((name, index) => `, ${name} => $${index + 2}`).join("");
  return call(`pawl.start($1${more})`, workflow, ...Object.values(given));
}

describe("pawl.start", () => {
  test.for(starts.map((start) => [start.what, start] as const))(
    "stores %s as the client does",
    async ([, { input, options, sql }]) => {
      const [byClient] = await rowsOf(stored, (await shop.pawl.start(untyped, input as never, options)).id);
      const [bySql] = await rowsOf(stored, await startInSql("confirm", sql));
      expect(bySql).toEqual(byClient);
    },
  );

  test("gives the run that has the key, whoever started it", async () => {
    const key = uniqueKey();
    const run = await shop.pawl.start(untyped, { a: 1, b: 2 } as never, { key });
    expect(await startInSql("confirm", { key, input: '{"b":2,"a":1.0}' })).toBe(run.id);
    const other = uniqueKey();
    const runId = await startInSql("confirm", { key: other, input: '{"b": 2, "a": 1}' });
    expect((await shop.pawl.start(untyped, { a: 1, b: 2 } as never, { key: other })).id).toBe(runId);
  });

  test("makes ids as the client does", async () => {
    const before = createIds(Date.now, systemRandom);
    const first = before.next();
    const ids = await rowsOf("select pawl.start('confirm') as id from generate_series(1, 200)");
    const made = ids.map((row) => row["id"] as string);
    expect(made.every((id) => isRunId(id) && shardOf(id) === 0)).toBe(true);
    expect(made.every((id) => /^.{14}7.{4}[89ab]/.test(id))).toBe(true);
    expect(new Set(made).size).toBe(200);
    // By age: to the ms, among those made elsewhere too.
    const msOf = (id: string): number => Number.parseInt(id.replace("-", "").slice(0, 12), 16);
    expect(made.map(msOf)).toEqual(made.map(msOf).toSorted((a, b) => a - b));
    expect(Math.abs(msOf(made[0]!) - msOf(first))).toBeLessThan(60_000);
    const [shards] = await rowsOf("select pawl.shard_of_v1(pawl.new_id_v1(777::smallint)) as shard");
    expect(shards).toEqual({ shard: 777 });
  });

  test("is executed once its transaction commits, and not at all when that rolls back", async () => {
    await inTransaction(shop.pool, async (client) => {
      await client.query("insert into purchase values (1)");
      const { rows: gone } = await client.query("select pawl.start('confirm', '1') as id");
      await client.query("rollback");
      await client.query("begin");
      await client.query("insert into purchase values (2)");
      const { rows } = await client.query("select pawl.start('confirm', '{\"id\":2}') as id");
      expect(await shop.pawl.get(rows[0].id)).toBeNull();
      await client.query("commit");
      const worker = shop.pawl.worker({ workflows: [confirm] });
      await worker.start();
      expect(await shop.pawl.handle(rows[0].id).result()).toEqual({ id: 2 });
      await worker.stop();
      expect(await shop.pawl.get(gone[0].id)).toBeNull();
      expect(await rowsOf("select id from purchase")).toEqual([{ id: 2 }]);
    });
  });
});

interface Refusal {
  readonly what: string;
  readonly client: () => Promise<unknown>;
  readonly sql: Readonly<Record<string, unknown>> & { readonly workflow?: string };
  readonly state: string;
}

const startWith = (input: unknown, options?: StartOptions) => () =>
  shop.pawl.start(untyped, input as never, options);
const startOf = (name: string, version: number) => async () =>
  shop.pawl.start(ref(name, version), undefined as never);
const long = "é".repeat(128);

const refusals: readonly Refusal[] = [
  { what: "no name", client: startOf("", 1), sql: { workflow: "" }, state: "PW003" },
  { what: "a long name", client: startOf(long, 1), sql: { workflow: long }, state: "PW003" },
  { what: "an empty key", client: startWith(1, { key: "" }), sql: { key: "" }, state: "PW003" },
  { what: "a long key", client: startWith(1, { key: long }), sql: { key: long }, state: "PW003" },
  { what: "an empty queue", client: startWith(1, { queue: "" }), sql: { queue: "" }, state: "PW003" },
  { what: "version 0", client: startOf("confirm", 0), sql: { version: 0 }, state: "PW005" },
  {
    what: "another way to treat a conflict",
    client: startWith(1, { onConflict: "replace" as never }),
    sql: { on_conflict: "replace" },
    state: "PW005",
  },
  {
    what: "a time without an end",
    client: startWith(1, { at: new Date(Number.NaN) }),
    sql: { start_at: "infinity" },
    state: "PW005",
  },
  {
    what: "a value that is too large",
    client: startWith("a".repeat(1024 * 1024 - 1)),
    sql: { input: JSON.stringify("a".repeat(1024 * 1024 - 1)) },
    state: "PW004",
  },
  { what: "a NUL", client: startWith(["\0"]), sql: { input: String.raw`["\u0000"]` }, state: "PW004" },
  {
    what: "half a character",
    client: startWith("\ud800"),
    sql: { input: String.raw`"\ud800"` },
    state: "PW004",
  },
  {
    what: "a value that is too deep",
    client: startWith(JSON.parse(nested(101))),
    sql: { input: nested(101) },
    state: "PW004",
  },
];

describe("what the client refuses, pawl.start refuses", () => {
  test.for(refusals.map((refusal) => [refusal.what, refusal] as const))("%s", async ([, refusal]) => {
    const { workflow = "confirm", ...given } = refusal.sql;
    const refused = await refusal.client().catch((error: unknown) => error as PawlError);
    expect(refused).toBeInstanceOf(PawlError);
    // To SQL a key and a queue are names like any other; to the client they are options.
    const detail = refusal.state === "PW003" ? "INVALID_NAME" : (refused as PawlError).code;
    await expect(startInSql(workflow, given)).rejects.toMatchObject({ code: refusal.state, detail });
  });

  test("a tag without a name", async () => {
    await expect(startInSql("confirm", { tags: ["a", ""] })).rejects.toMatchObject({ code: "PW003" });
    await expect(startInSql("confirm", { tags: ["a", "b"] })).resolves.toSatisfy(isRunId);
  });

  test("a key of another run, with that run's id", async () => {
    const key = uniqueKey();
    const run = await shop.pawl.start(untyped, 1 as never, { key });
    const message = `The key "${key}" belongs to run ${run.id}, which has another workflow, version or input.`;
    await expect(shop.pawl.start(untyped, 2 as never, { key })).rejects.toMatchObject({ message });
    for (const other of [{ input: "2" }, { input: "1", version: 2 }, {}]) {
      await expect(startInSql("confirm", { key, ...other })).rejects.toMatchObject({
        code: "PW002",
        detail: "KEY_CONFLICT",
        message,
      });
    }
    await expect(startInSql("deliver", { key, input: "1" })).rejects.toMatchObject({ code: "PW002" });
    await expect(startInSql("confirm", { key, input: "1", on_conflict: "reject" })).rejects.toMatchObject({
      code: "PW002",
      message: `The key "${key}" belongs to run ${run.id}.`,
    });
  });
});

describe("pawl.signal and pawl.cancel", () => {
  /** What a caller tells a run: by the client, and in SQL. */
  const tales: readonly {
    readonly what: string;
    readonly client: (run: RunHandle, tx: pg.PoolClient) => Promise<void>;
    readonly sql: string;
  }[] = [
    {
      what: "a signal",
      client: (run, tx) => run.signal("shipped", undefined, { tx }),
      sql: "pawl.signal($1, 'shipped')",
    },
    {
      what: "a signal's payload",
      client: (run, tx) => run.signal("shipped", { by: "sea" }, { tx }),
      sql: `pawl.signal($1, 'shipped', '{"by":"sea"}')`,
    },
    {
      what: "a signal's key",
      client: (run, tx) => run.signal("shipped", null, { tx, idempotencyKey: "form" }),
      sql: "pawl.signal($1, 'shipped', 'null', 'form')",
    },
    { what: "a cancel", client: (run, tx) => run.cancel({ tx }), sql: "pawl.cancel($1)" },
    {
      what: "a reason",
      client: (run, tx) => run.cancel({ tx, reason: "it's late" }),
      sql: "pawl.cancel($1, 'it''s late')",
    },
  ];

  test.for(tales.map((tale) => [tale.what, tale] as const))(
    "store %s as the client does",
    async ([, tale]) => {
      const [byClient, bySql] = [await shop.pawl.start(deliver), await shop.pawl.start(deliver)];
      await inTransaction(shop.pool, async (tx) => {
        // Outside of one, a cancel would end the run at once: here it is only stored, as in SQL.
        await tale.client(byClient, tx);
        await tx.query("commit");
      });
      expect(await call(tale.sql, bySql.id)).toBe("accepted");
      const messages = await rowsOf(inboxOf, bySql.id);
      expect(messages).toHaveLength(1);
      expect(messages).toEqual(await rowsOf(inboxOf, byClient.id));
    },
  );

  test("answer as the client does", async () => {
    const run = await shop.pawl.start(deliver);
    expect(await call("pawl.signal($1, 'shipped', '1', 'form')", run.id)).toBe("accepted");
    expect(await call("pawl.signal($1, 'shipped', '2', 'form')", run.id)).toBe("duplicate");
    await run.signal("shipped", 3, { idempotencyKey: "form" });
    expect(await rowsOf(inboxOf, run.id)).toHaveLength(1);
    await run.cancel();
    expect(await run.status()).toBe("cancelled");
    expect(await call("pawl.signal($1, 'shipped', '2', 'form')", run.id)).toBe("duplicate");
    expect(await call("pawl.signal($1, 'shipped')", run.id)).toBe("ended");
    expect(await call("pawl.cancel($1)", run.id)).toBe("ended");
    const nobody = "01900000-0000-7000-8000-000000000000";
    expect(await call("pawl.signal($1, 'shipped')", nobody)).toBe("missing");
    expect(await call("pawl.cancel($1)", nobody)).toBe("missing");
    expect(await call("pawl.cancel(null)")).toBe("missing");
  });

  test("refuse what the client refuses", async () => {
    const run = await shop.pawl.start(deliver);
    const refused = (expression: string, code: string) =>
      expect(call(expression, run.id)).rejects.toMatchObject({ code });
    await refused("pawl.signal($1, '')", "PW003");
    await refused(`pawl.signal($1, '${long}')`, "PW003");
    await refused("pawl.signal($1, 'shipped', 'null', '')", "PW003");
    await refused(String.raw`pawl.signal($1, 'shipped', '"\u0000"')`, "PW004");
    await refused("pawl.cancel($1, repeat('a', 1024 * 1024))", "PW004");
    expect(await rowsOf(inboxOf, run.id)).toEqual([]);
  });

  test("wake the runs they tell", async () => {
    const worker = shop.pawl.worker({ workflows: [deliver], pollInterval: "1h" });
    await worker.start();
    const [told, cancelled] = [await shop.pawl.start(deliver), await shop.pawl.start(deliver)];
    for (const run of [told, cancelled]) await expect.poll(() => run.status()).toBe("waiting");
    await call(`pawl.signal($1, 'shipped', '"by sea"')`, told.id);
    await call("pawl.cancel($1)", cancelled.id);
    expect(await told.result()).toBe("by sea");
    await expect(cancelled.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await worker.stop();
  });
});

describe("pawl.signal_or_start", () => {
  const asked =
    "pawl.signal_or_start('deliver', $1, 'shipped', $2::json, input => '1', idempotency_key => $3)";

  test("stores what the client stores in a transaction", async () => {
    const [bySql, byClient] = [uniqueKey(), uniqueKey()];
    const payload = { by: "sea" };
    const sqlId = await call(asked, bySql, JSON.stringify(payload), "form");
    const options = { key: byClient, input: 1 as never, signal: "shipped", payload, idempotencyKey: "form" };
    await inTransaction(shop.pool, async (tx) => {
      await shop.pawl.signalOrStart(ref("deliver", 1), { ...options, tx });
      await tx.query("commit");
    });
    const { runs } = await shop.pawl.list({ key: byClient });
    expect(await rowsOf(stored, sqlId)).toEqual(await rowsOf(stored, runs[0]!.id));
    expect(await rowsOf(inboxOf, sqlId)).toEqual(await rowsOf(inboxOf, runs[0]!.id));
    expect(await rowsOf(inboxOf, sqlId)).toHaveLength(1);
  });

  test("signals the run that has the key, each idempotency key once", async () => {
    const key = uniqueKey();
    const id = await call(asked, key, "1", "a");
    expect(await call(asked, key, "1", "a")).toBe(id);
    expect(await call(asked, key, "2", "b")).toBe(id);
    expect((await rowsOf(inboxOf, id)).map((row) => row["data"])).toEqual([1, 2]);
  });

  test("exists only if the transaction commits", async () => {
    const key = uniqueKey();
    const client = await shop.pool.connect();
    await client.query("begin");
    await client.query(`select ${asked}`, [key, "1", null]);
    await client.query("rollback");
    client.release();
    expect((await shop.pawl.list({ key })).runs).toEqual([]);
  });

  test("two open transactions start one run, and both signals arrive", async () => {
    const key = uniqueKey();
    const [one, other] = [await shop.pool.connect(), await shop.pool.connect()];
    await Promise.all([one, other].map((client) => client.query("begin")));
    const first = await one.query(`select ${asked} as id`, [key, "1", null]);
    const second = other.query(`select ${asked} as id`, [key, "2", null]);
    await one.query("commit");
    const id = first.rows[0].id;
    expect((await second).rows[0].id).toBe(id);
    await other.query("commit");
    for (const client of [one, other]) client.release();
    expect((await rowsOf(inboxOf, id)).map((row) => row["data"])).toEqual([1, 2]);
  });

  test("starts what a worker executes, with the signal", async () => {
    const id = await call(asked, uniqueKey(), '"by sea"', null);
    await shop.pawl.worker({ workflows: [deliver] }).runUntilIdle();
    expect(await shop.pawl.handle(id).result()).toBe("by sea");
  });

  test("refuses what the client refuses", async () => {
    const refused = (expression: string, code: string): Promise<void> =>
      expect(call(expression)).rejects.toMatchObject({ code });
    const key = uniqueKey();
    await refused("pawl.signal_or_start('deliver', null, 'shipped')", "PW003");
    await refused("pawl.signal_or_start('deliver', 'k', '')", "PW003");
    await refused("pawl.signal_or_start('', 'k', 'shipped')", "PW003");
    await refused("pawl.signal_or_start('deliver', 'k', 'shipped', version => 0)", "PW005");
    await refused(String.raw`pawl.signal_or_start('deliver', 'k', 'shipped', '"\u0000"')`, "PW004");
    const run = await shop.pawl.start(deliver, undefined, { key, delay: "1d" });
    await refused(`pawl.signal_or_start('confirm', '${key}', 'shipped')`, "PW002");
    await run.cancel();
    await refused(`pawl.signal_or_start('deliver', '${key}', 'shipped')`, "PW006");
    await refused("pawl.start('confirm', on_conflict => 'reject')", "PW005");
  });
});

describe("the functions of the schema", () => {
  test("do the same whatever the search path holds", async () => {
    await inTransaction(shop.pool, async (client) => {
      await client.query(`
        create schema evil;
        create function evil.octet_length(text) returns integer language sql as 'select 1 / 0';
        create function evil.replace(text, text, text) returns text language sql as 'select null::text';
        create function evil.lpad(text, integer, text) returns text language sql as 'select null::text';
        set local search_path = evil, pg_catalog`);
      const { rows } = await client.query("select pawl.start('confirm', '1', key => 'evil') as id");
      expect(rows[0].id).toSatisfy(isRunId);
      await client.query("set local search_path = ''");
      await client.query("select pawl.signal($1, 'shipped'), pawl.cancel($1)", [rows[0].id]);
    });
  });

  test("are for roles that the schema was granted to", async () => {
    const role = `clerk_${randomBytes(6).toString("hex")}`;
    await shop.pool.query(`create role ${role}`);
    await inTransaction(shop.pool, async (client) => {
      await client.query(`set local role ${role}`);
      await expect(client.query("select pawl.start('confirm')")).rejects.toMatchObject({ code: "42501" });
    });
    await shop.pawl.migrate({ grantTo: role });
    await inTransaction(shop.pool, async (client) => {
      await client.query(`set local role ${role}`);
      const { rows } = await client.query("select pawl.start('deliver', key => 'mine') as id");
      const answers = await client.query("select pawl.signal($1, 'shipped') as a, pawl.cancel($1) as b", [
        rows[0].id,
      ]);
      expect(answers.rows).toEqual([{ a: "accepted", b: "accepted" }]);
    });
    await shop.pool.query(`drop owned by ${role}; drop role ${role}`);
  });
});
