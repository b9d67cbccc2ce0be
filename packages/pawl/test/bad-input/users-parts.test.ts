import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, PawlError, workflow, type PawlOptions, type PayloadCodec } from "../../src/index.ts";
import { idle } from "./entries.ts";
import { junk } from "./junk.ts";
import { faultOf } from "./outcome.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

const never = (value: unknown): never => value as never;

const stores: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", () => ({ memory: true })],
  ["Postgres", (place) => ({ ...place, autoMigrate: true })],
];

/** What a schema made of somebody's code may answer. */
function schemaThat(validate: () => unknown): never {
  return never({ "~standard": { version: 1, vendor: "junk", validate } });
}

describe.each(stores)("with %s", (_name, optionsIn) => {
  test(
    "a schema that answers junk refuses, or its value is stored",
    { timeout: 60_000 },
    async ({ pool, schema }) => {
      await using pawl = createPawl(optionsIn({ pool, schema }));
      const wrong: string[] = [];
      // What is awaited throws what it throws.
      for (const { label, make } of junk.filter(({ changes }) => changes !== true)) {
        const answers = [
          () => make(),
          () => ({ value: make() }),
          () => ({ issues: make() }),
          () => ({ issues: [make()] }),
          () => ({ issues: [{ message: make(), path: make() }] }),
          () => Promise.resolve({ value: make() }),
        ];
        for (const [index, answer] of answers.entries()) {
          const parsed = workflow({ name: "parsed", version: 1, input: schemaThat(answer) }, async () => 1);
          try {
            await pawl.start(parsed, never(1), { queue: "nobody" });
          } catch (error) {
            if (!PawlError.is(error, "INVALID_PAYLOAD") || faultOf(error) !== "refused")
              wrong.push(`${label} in place ${index}: ${faultOf(error)}`);
          }
        }
      }
      expect(wrong).toEqual([]);
    },
  );

  test("a schema's promise of any kind is waited for", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    // A promise of another library.
    const later = { then: (resolve: (value: unknown) => void) => resolve({ value: "parsed" }) };
    const parsed = workflow(
      { name: "parsed", version: 1, input: schemaThat(() => later) },
      async (_ctx, input) => input,
    );
    const run = await pawl.start(parsed, never(1), { queue: "nobody" });
    expect((await pawl.get(run.id))!.input).toBe("parsed");
  });

  test(
    "a codec that answers junk fails the call, and nothing is stored",
    { timeout: 60_000 },
    async ({ pool, schema }) => {
      const wrong: string[] = [];
      let answers = 0;
      for (const part of ["encode", "digest"] as const) {
        for (const { label, make } of junk) {
          const codec: PayloadCodec = {
            name: "junk",
            encode: part === "encode" ? () => never(make()) : (plain) => plain,
            decode: (stored) => stored,
            digest: part === "digest" ? () => never(make()) : (plain) => plain,
          };
          const pawl = createPawl({ ...optionsIn({ pool, schema }), codec });
          try {
            const run = await pawl.start(idle, 1, { key: `${part} ${label}`, queue: "nobody" });
            answers += 1;
            await run.cancel();
            await pawl.list({ key: `${part} ${label}` }).catch((error: unknown) => {
              if (!PawlError.is(error)) wrong.push(`${part}: ${label}: read: ${String(error)}`);
            });
          } catch (error) {
            if (!PawlError.is(error, "CODEC_FAILED")) wrong.push(`${part}: ${label}: ${String(error)}`);
          } finally {
            await pawl.close();
          }
        }
      }
      expect(wrong).toEqual([]);
      expect(answers).toBeGreaterThan(10);
    },
  );

  test(
    "a codec that reads junk back fails the reading, and the run waits for one that can",
    { timeout: 60_000 },
    async ({ pool, schema }) => {
      const wrong: string[] = [];
      let reads: () => unknown = () => "1";
      const codec: PayloadCodec = {
        name: "junk",
        encode: (plain) => Buffer.from(plain).toString("base64"),
        decode: () => never(reads()),
        digest: () => "same",
      };
      await using pawl = createPawl({ ...optionsIn({ pool, schema }), codec });
      const run = await pawl.start(idle, 1, { queue: "nobody" });
      for (const { label, make } of junk) {
        reads = make;
        try {
          await pawl.get(run.id);
        } catch (error) {
          if (!PawlError.is(error, "CODEC_FAILED") && !PawlError.is(error, "INVALID_PAYLOAD"))
            wrong.push(`${label}: ${String(error)}`);
        }
      }
      expect(wrong).toEqual([]);
    },
  );

  test(
    "a hook, a log and a retryIf may answer or throw junk",
    { timeout: 60_000 },
    async ({ pool, schema }) => {
      let at = 0;
      const answer = (): never => {
        const { make } = junk[at++ % junk.length]!;
        if (at % 2 === 0) throw make();
        return never(make());
      };
      const log = { debug: answer, info: answer, warn: answer, error: answer };
      await using pawl = createPawl({ ...optionsIn({ pool, schema }), log, onEvent: answer });
      const retried = workflow(
        { name: "retried", version: 1, retry: { attempts: 2, initial: 0, retryIf: answer } },
        async (ctx) => {
          ctx.log.info("on its way");
          await ctx.step("throw", () => Promise.reject(new Error("no")), {
            retry: { attempts: 2, initial: 0, retryIf: answer },
          });
        },
      );
      await pawl.worker({ workflows: [retried] }).start();
      const runs = await pawl.startMany(
        retried,
        Array.from({ length: 150 }, () => ({})),
      );
      for (const run of runs) await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
      expect(at).toBeGreaterThan(3 * junk.length);
    },
  );
});

test("a codec's name is one that can be stored", async () => {
  for (const name of ["", "a\0b", "\ud800", "x".repeat(256), 5, null]) {
    const codec = { name, encode: String, decode: String, digest: String };
    expect(() => createPawl({ memory: true, codec: never(codec) })).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  }
});
