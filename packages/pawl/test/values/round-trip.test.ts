import fc from "fast-check";
import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { aesGcmCodec, createPawl, PawlError, type Pawl, type PawlOptions } from "../../src/index.ts";
import { differenceOf, richValue } from "../core/rich-value.ts";
import { expectMirrored, mirror, stumble, valueWorkflows } from "./mirror.ts";

const codec = aesGcmCodec({ keys: [{ id: "one", key: new Uint8Array(32).fill(1) }] });

// oxlint-disable-next-line no-sparse-arrays
const sparse = [1, , undefined, null];
const everyKind: readonly unknown[] = [
  undefined,
  null,
  { plain: ["json", 1.5, { deep: true }] },
  new Date("2026-11-15T12:00:00.123Z"),
  new Date(Number.NaN),
  new Map<unknown, unknown>([[{ a: 1n }, new Set([new Date(0)])]]),
  -(10n ** 40n),
  new Uint8Array([0, 1, 255]),
  Buffer.from("bytes"),
  [Number.NaN, Infinity, -Infinity, -0],
  sparse,
  { none: undefined, "a.b": 1n },
  Object.assign(new TypeError("outer", { cause: new Error("inner") }), { code: "E" }),
  new PawlError("INTERNAL", "ours", { at: new Date(0) }),
  JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":2}}'),
  'ünï 🎉 \u2028 \\ " \\u0000 \\ud800',
];

const places: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", ({ codec }) => ({ memory: true, ...(codec && { codec }) })],
  ["Postgres", (options) => ({ ...options, autoMigrate: true })],
];

describe.each(places)("through %s", (_name, optionsOf) => {
  describe.each([
    ["in clear", {}],
    ["encrypted", { codec }],
  ])("%s", (_how, sealed) => {
    test("every kind of value comes back from every place as it went", async ({ pool, schema }) => {
      await using pawl = createPawl(optionsOf({ pool, schema, ...sealed }));
      await pawl.worker({ workflows: valueWorkflows }).start();
      await Promise.all(everyKind.map((value) => expectMirrored(pawl, value)));
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    });

    test("so do values made at random", async ({ pool, schema }) => {
      await using pawl = createPawl(optionsOf({ pool, schema, ...sealed }));
      await pawl.worker({ workflows: valueWorkflows }).start();
      await Promise.all(fc.sample(richValue, 60).map((value) => expectMirrored(pawl, value)));
    });

    test("a child's undefined is not null", async ({ pool, schema }) => {
      await using pawl = createPawl(optionsOf({ pool, schema, ...sealed }));
      await pawl.worker({ workflows: valueWorkflows }).start();
      const outputs = [undefined, null].map(async (value) => {
        const run = await pawl.start(mirror, value);
        await run.signal("value", value);
        return (await run.result()).get("child");
      });
      expect(await Promise.all(outputs)).toStrictEqual([undefined, null]);
    });

    test("errors thrown in a step, in a child and by the run keep what tells of them", async ({
      pool,
      schema,
    }) => {
      await using pawl = createPawl(optionsOf({ pool, schema, ...sealed }));
      await pawl.worker({ workflows: valueWorkflows }).start();
      await expectStumble(pawl);
    });

    test("a key belongs to the value, type and all", async ({ pool, schema }) => {
      await using pawl = createPawl(optionsOf({ pool, schema, ...sealed }));
      const at = new Date(0);
      const run = await pawl.start(mirror, { at, n: 1 }, { key: "k" });
      const again = await pawl.start(mirror, { n: 1, at: new Date(0) }, { key: "k" });
      expect(again.id).toBe(run.id);
      for (const other of [{ at: at.toISOString(), n: 1 }, { at, n: 1n }, { at, n: 2 }, undefined])
        await expect(pawl.start(mirror, other, { key: "k" })).rejects.toMatchObject({ code: "KEY_CONFLICT" });
    });
  });

  test("what cannot be stored is refused before anything is acknowledged", async ({ pool, schema }) => {
    await using pawl = createPawl({ ...optionsOf({ pool, schema }), maxPayloadBytes: 1_000 });
    const run = await pawl.start(mirror, "x".repeat(998));
    for (const value of [
      "x".repeat(999),
      { a: "a\0" },
      ["\ud800"],
      new Map([["\udfff", 1]]),
      () => {},
      /x/,
    ]) {
      await expect(pawl.start(mirror, value)).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
      await expect(run.signal("value", value)).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    }
    for (const key of ["", "x".repeat(256), "é".repeat(128), "a\0", "\ud800"])
      await expect(pawl.start(mirror, 1, { key })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    for (const name of ["", "x".repeat(256), "a\0", "\ud800"])
      await expect(run.signal(name, 1)).rejects.toMatchObject({ code: "INVALID_NAME" });
    for (const id of ["", "no id", "x".repeat(3_000), "a\0", "\ud800", "' or 1=1 --"]) {
      expect(await pawl.get(id)).toBe(null);
      await expect(pawl.handle(id).result()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    }
    for (const key of ["x".repeat(255), "🎉", "../\n'\"; drop table run", "%00", "="])
      expect((await pawl.get((await pawl.start(mirror, 1, { key })).id))!.key).toBe(key);
    expect((await pawl.list()).runs).toHaveLength(6);
  });

  test("the limit holds for workers too", async ({ pool, schema }) => {
    await using pawl = createPawl({ ...optionsOf({ pool, schema }), maxPayloadBytes: 2_000_000 });
    await pawl.worker({ workflows: valueWorkflows }).start();
    await expectMirroredInPart(pawl, "x".repeat(400_000));
    const run = await pawl.start(mirror, "x".repeat(1_500_000));
    await run.signal("value", "x".repeat(1_500_000));
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "INVALID_PAYLOAD", message: expect.stringContaining("larger than 2000000 bytes") },
    });
  });
});

async function expectMirroredInPart(pawl: Pawl, value: unknown): Promise<void> {
  const run = await pawl.start(mirror, value);
  await run.signal("value", value);
  expect((await run.result()).get("kept")).toBe(value);
}

async function expectStumble(pawl: Pawl): Promise<void> {
  const thrown = Object.assign(new RangeError("far out", { cause: new Error("why") }), { code: "E_FAR" });
  const told = {
    name: "RangeError",
    message: "far out",
    code: "E_FAR",
    stack: thrown.stack,
    cause: { message: "why" },
  };
  const run = await pawl.start(stumble, { thrown });
  await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED", cause: told });
  const read = await pawl.get(run.id);
  expect(read!.error).toMatchObject(told);
  expect(differenceOf((read!.input as { thrown: unknown }).thrown, thrown)).toBe(null);
  const history = await run.history();
  expect(history.find(({ kind }) => kind === "step_completed")!.data).toMatchObject([
    told,
    { code: "RUN_FAILED", cause: told },
  ]);
  expect(history.filter(({ kind }) => kind === "attempt_failed")).toMatchObject([{ data: told }]);
  expect(history.at(-1)).toMatchObject({ kind: "failed", data: told });
}
