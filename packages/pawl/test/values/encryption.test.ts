import { test } from "pawl-test-support";
import type pg from "pg";
import { describe, expect } from "vitest";
import { aesGcmCodec, createPawl, workflow, type AesGcmKey, type PawlOptions } from "../../src/index.ts";
import { expectMirrored, mirror, stumble, valueWorkflows } from "./mirror.ts";

const one: AesGcmKey = { id: "2026-11", key: new Uint8Array(32).fill(1) };
const two: AesGcmKey = { id: "2027-01", key: Buffer.alloc(32, 2).toString("base64") };
const codec = aesGcmCodec({ keys: [one] });

const patient = workflow({ name: "patient", version: 1 }, async (ctx, secret: string) => {
  await ctx.step("keep", () => `${secret} in a result`);
  const signal = await ctx.waitForSignal<string>("go");
  return `${signal} in an output`;
});

/** Everything that is stored, as text. */
async function dump(pool: pg.Pool, schema: string): Promise<string> {
  const { rows: tables } = await pool.query<{ name: string }>(
    "select format('%I.%I', table_schema, table_name) as name from information_schema.tables where table_schema = $1",
    [schema],
  );
  const texts = tables.map(async ({ name }) => {
    const { rows } = await pool.query<{ line: string }>(`select t::text as line from ${name} t`);
    return rows.map(({ line }) => `${name} ${line}`);
  });
  return (await Promise.all(texts)).flat().join("\n");
}

const secret = "marzipan";
const hidden = /marzipan|bWFyemlwYW|1hcnppcGFu|tYXJ6aXBhb/i;

test("nothing of a payload can be read in any table, at any time of a run's life", async ({
  pool,
  schema,
}) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true, codec });
  const run = await pawl.start(patient, secret, { key: "order:1" });
  await run.signal("other", { note: `${secret} in a signal` });
  const cancelled = await pawl.start(patient, secret);
  await cancelled.cancel(`${secret} in a reason`);
  expect(await dump(pool, schema)).not.toMatch(hidden);

  await pawl.worker({ workflows: [patient, ...valueWorkflows] }).start();
  const stumbled = await pawl.start(stumble, { thrown: new Error(`${secret} in an error`) });
  await expect(stumbled.result()).rejects.toMatchObject({ cause: { message: `${secret} in an error` } });
  await expectMirrored(pawl, new Map([[secret, new Error(secret)]]));
  expect(await run.status()).toBe("waiting");
  expect(await dump(pool, schema)).not.toMatch(hidden);

  await run.signal("go", secret);
  expect(await run.result()).toBe("marzipan in an output");
  await expect(cancelled.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
  expect(await cancelled.history()).toMatchObject([{ data: { reason: "marzipan in a reason" } }, {}]);
  const text = await dump(pool, schema);
  expect(text).not.toMatch(hidden);
  // What people look for stays readable, and so does which key it takes.
  for (const word of ["order:1", "patient", "keep", "aes-gcm", "2026-11:"]) expect(text).toContain(word);
});

test("what was stored in clear stays readable when a codec is turned on", async ({ pool, schema }) => {
  const place = { pool, schema, autoMigrate: true };
  await using before = createPawl(place);
  const run = await before.start(patient, "old", { key: "k" });
  const worker = before.worker({ workflows: [patient] });
  await worker.start();
  await until(async () => (await run.status()) === "waiting");
  await worker.stop();

  await using after = createPawl({ ...place, codec });
  await after.worker({ workflows: [patient] }).start();
  await after.signal(run.id, "go", "new");
  expect(await after.handle(run.id).result()).toBe("new in an output");
  expect(await after.get(run.id)).toMatchObject({ input: "old" });
  expect((await after.handle(run.id).history()).map(({ data }) => data)).toEqual([
    "old in a result",
    "new",
    undefined,
  ]);
});

test("keys are rotated while runs are under way", async ({ pool, schema }) => {
  const place = { pool, schema, autoMigrate: true };
  const rotated = aesGcmCodec({ keys: [two, one] });
  await using before = createPawl({ ...place, codec });
  const run = await before.start(patient, secret, { key: "k" });
  const worker = before.worker({ workflows: [patient] });
  await worker.start();
  await until(async () => (await run.status()) === "waiting");
  await worker.stop();

  await using after = createPawl({ ...place, codec: rotated });
  // The key still belongs to the same input.
  expect((await after.start(patient, secret, { key: "k" })).id).toBe(run.id);
  await expect(after.start(patient, "other", { key: "k" })).rejects.toMatchObject({ code: "KEY_CONFLICT" });
  await after.worker({ workflows: [patient] }).start();
  await after.signal(run.id, "go", "go");
  expect(await after.handle(run.id).result()).toBe("go in an output");

  const { rows } = await pool.query(
    `select input->>'data' as input, output->>'data' as output from ${schema}.runs`,
  );
  expect(rows).toEqual([
    { input: expect.stringMatching(/^2026-11:/), output: expect.stringMatching(/^2027-01:/) },
  ]);
  await using without = createPawl({ ...place, codec: aesGcmCodec({ keys: [two] }) });
  expect(await without.handle(run.id).result()).toBe("go in an output");
  await expect(without.get(run.id)).rejects.toMatchObject({
    code: "CODEC_FAILED",
    message: expect.stringContaining('its key "2026-11" is not among those given'),
  });
});

describe("a ciphertext that somebody has", () => {
  const pair = workflow({ name: "pair", version: 1 }, async (ctx, name: string) => {
    const first = await ctx.step("first", () => `${name} first`);
    await ctx.step("second", () => `${name} second`);
    return first;
  });

  async function twoRuns(place: PawlOptions) {
    const pawl = createPawl({ ...place, autoMigrate: true, codec });
    await pawl.worker({ workflows: [pair] }).start();
    const runs = await Promise.all(["a", "b"].map((name) => pawl.start(pair, name)));
    await Promise.all(runs.map((run) => run.result()));
    return { pawl, a: runs[0]!, b: runs[1]! };
  }

  const refused = { code: "CODEC_FAILED", message: expect.stringContaining("changed or moved") };

  test("moved to another run does not decrypt there", async ({ pool, schema }) => {
    const { pawl, a, b } = await twoRuns({ pool, schema });
    await using _ = pawl;
    await pool.query(
      `update ${schema}.run r set input = s.input from ${schema}.run s where r.id = $1 and s.id = $2`,
      [a.id, b.id],
    );
    await pool.query(
      `update ${schema}.event e set data = s.data from ${schema}.event s
        where e.run_id = $1 and s.run_id = $2 and e.kind = 'completed' and s.kind = 'completed'`,
      [a.id, b.id],
    );
    await expect(a.result()).rejects.toMatchObject(refused);
    await expect(pawl.get(a.id)).rejects.toMatchObject(refused);
    await expect(pawl.list()).rejects.toMatchObject(refused);
    expect(await b.result()).toBe("b first");
  });

  test("moved to another step, or to another field, does not decrypt there", async ({ pool, schema }) => {
    const { pawl, a } = await twoRuns({ pool, schema });
    await using _ = pawl;
    await pool.query(
      `update ${schema}.event e set data = s.data from ${schema}.event s
        where e.run_id = $1 and s.run_id = $1 and e.name = 'first' and s.name = 'second'`,
      [a.id],
    );
    await expect(a.history()).rejects.toMatchObject(refused);
    await pool.query(
      `update ${schema}.event set data = input from ${schema}.run where run_id = $1 and id = $1 and kind = 'completed'`,
      [a.id],
    );
    await expect(a.result()).rejects.toMatchObject(refused);
  });

  test("moved from one child to another does not decrypt there", async ({ pool, schema }) => {
    const part = workflow({ name: "part", version: 1 }, async (ctx, name: string) => {
      await ctx.waitForSignal(name);
      return name;
    });
    const both = workflow({ name: "both", version: 1 }, async (ctx) => {
      const parts = await Promise.all([ctx.call(part, "a"), ctx.call(part, "b")]);
      await ctx.waitForSignal("go");
      return parts;
    });
    await using pawl = createPawl({ pool, schema, autoMigrate: true, codec });
    // It must read what was changed behind its back.
    await pawl.worker({ workflows: [part, both], stickyRuns: 0 }).start();
    const run = await pawl.start(both);
    await until(async () => (await pawl.list({ workflow: "part", status: "waiting" })).runs.length === 2);
    for await (const child of pawl.listAll({ workflow: "part" }))
      await pawl.signal(child.id, String(child.input));
    await until(async () => (await run.history()).filter(({ kind }) => kind === "child_ended").length === 2);
    // Until it is parked, its worker knows by heart what it has done.
    await until(async () => (await run.status()) === "waiting");
    await pool.query(
      `update ${schema}.event e set data = s.data from ${schema}.event s
        where e.run_id = $1 and s.run_id = $1 and e.kind = 'child_ended' and s.kind = 'child_ended' and e.name <> s.name`,
      [run.id],
    );
    await expect(run.history()).rejects.toMatchObject(refused);
    await run.signal("go");
    await until(async () => (await run.status()) === "blocked");
  });

  test("changed does not decrypt", async ({ pool, schema }) => {
    const { pawl, a } = await twoRuns({ pool, schema });
    await using _ = pawl;
    const { rows } = await pool.query<{ output: string }>(
      `select data::text as output from ${schema}.event where run_id = $1 and kind = 'completed'`,
      [a.id],
    );
    const damages = [
      `jsonb_set(data::jsonb, '{data}', to_jsonb(overlay(data->>'data' placing 'AAAA' from 40 for 4)))`,
      `jsonb_set(data::jsonb, '{data}', to_jsonb(left(data->>'data', 20)))`,
      `jsonb_set(data::jsonb, '{data}', '5')`,
      `'null'::jsonb`,
    ];
    const change = (data: string): string =>
      `update ${schema}.event set data = (${data})::json where run_id = $1 and kind = 'completed'`;
    for (const damage of damages) {
      await pool.query(change(damage), [a.id]);
      await expect(a.result()).rejects.toMatchObject({ code: "CODEC_FAILED" });
      await pool.query(change("$2"), [a.id, rows[0]!.output]);
      expect(await a.result()).toBe("a first");
    }
  });
});

test("a process without the codec says so, and can still see how runs stand", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true, codec });
  const run = await pawl.start(mirror, secret);
  await using without = createPawl({ pool, schema });
  const missing = {
    code: "CODEC_MISSING",
    message: expect.stringContaining('was written with the codec "aes-gcm", and this process has none'),
  };
  await expect(without.get(run.id)).rejects.toMatchObject(missing);
  await expect(without.list()).rejects.toMatchObject(missing);
  expect(await without.handle(run.id).status()).toBe("pending");
  expect(await without.handle(run.id).history()).toEqual([]);
});

/** The run is under way in a real worker: there is nothing but looking. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => void setImmediate(resolve));
}
