import { test } from "pawl-test-support";
import { expect } from "vitest";
import { aesGcmCodec, createPawl, workflow, type StreamItem } from "../../src/index.ts";
import { inBothPlaces } from "./places.ts";

const chat = workflow(
  { name: "chat", version: 1, retry: { attempts: 2, initial: 1 } },
  async (ctx, words: number) => {
    await ctx.step("llm", async ({ stream, attempt }) => {
      const out = stream<string>("tokens");
      for (let word = 1; word <= words; word++) {
        await out.write(`word ${word}`);
        if (attempt === 1 && word === 2) throw new Error("cut off");
      }
    });
    await ctx.waitForSignal("close");
    const out = ctx.stream<string>("tokens");
    await out.write("end");
    await out.close();
    await ctx.waitForSignal("finish");
  },
);

async function collect(
  items: AsyncIterable<StreamItem<string>>,
  most = Infinity,
): Promise<StreamItem<string>[]> {
  const seen: StreamItem<string>[] = [];
  for await (const item of items) {
    seen.push(item);
    if (seen.length === most) break;
  }
  return seen;
}

const valuesOf = (items: readonly StreamItem<string>[]): readonly string[] => items.map(({ value }) => value);

inBothPlaces(
  "a stream is read while it is written, by many, from other processes, from any position",
  async (place) => {
    const pawl = await place.open();
    const elsewhere = await place.open();
    const run = await pawl.start(chat, 4);
    const readers = [run.stream<string>("tokens"), elsewhere.stream<string>(run.id, "tokens")].map((items) =>
      collect(items),
    );
    const impatient = collect(elsewhere.handle(run.id).stream<string>("tokens", { from: 3 }), 2);
    await pawl.worker({ workflows: [chat] }).start();
    expect((await impatient).map(({ position, value }) => [position, value])).toEqual([
      [3, "word 1"],
      [4, "word 2"],
    ]);
    await run.signal("close");
    const all = ["word 1", "word 2", "word 1", "word 2", "word 3", "word 4", "end"];
    for (const seen of await Promise.all(readers)) {
      expect(valuesOf(seen)).toEqual(all);
      expect(seen.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6, 7]);
      expect(seen.map(({ step, attempt, isFirst }) => `${step} ${attempt} ${isFirst}`)).toEqual([
        "llm 1 true",
        "llm 1 false",
        "llm 2 true",
        "llm 2 false",
        "llm 2 false",
        "llm 2 false",
        "null null false",
      ]);
    }
    expect(await run.status()).not.toBe("completed");
    await run.signal("finish");
    await run.result();
    expect(valuesOf(await collect(elsewhere.stream(run.id, "tokens", { from: 5 })))).toEqual(all.slice(4));
    expect(await collect(elsewhere.stream(run.id, "tokens", { from: 50 }))).toEqual([]);
    expect(await collect(elsewhere.stream(run.id, "never written"))).toEqual([]);
  },
);

inBothPlaces("reading ends with the run, with the signal, and with its Pawl", async (place) => {
  const pawl = await place.open();
  const run = await pawl.start(chat, 1);
  const waiting = collect(run.stream("tokens"));
  await run.cancel();
  expect(await waiting).toEqual([]);

  const other = await pawl.start(chat, 1);
  const controller = new AbortController();
  const aborted = collect(other.stream("tokens", { signal: controller.signal }));
  controller.abort(new Error("enough"));
  await expect(aborted).rejects.toThrow("enough");
  await expect(
    collect(other.stream("tokens", { signal: AbortSignal.abort(new Error("early")) })),
  ).rejects.toThrow("early");
  const missing = `${run.id.slice(0, -4)}ffff`;
  await expect(collect(pawl.stream(missing, "tokens"))).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  await expect(collect(other.stream(""))).rejects.toMatchObject({ code: "INVALID_NAME" });
  for (const options of [{ from: 0 }, { from: 1.5 }, { form: 1 }, { signal: 7 }])
    await expect(collect(other.stream("tokens", options as never))).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });

  const closing = collect(other.stream("tokens")).catch((error: unknown) => error);
  await new Promise<void>((resolve) => void setImmediate(resolve));
  await pawl.close();
  expect(await closing).toMatchObject({ code: "CLOSED" });
});

test("streams are encrypted, shown in their view, and read without notifications", async ({
  pool,
  database,
  schema,
}) => {
  const codec = aesGcmCodec({ keys: [{ id: "1", key: new Uint8Array(32).fill(1) }] });
  await using sealed = createPawl({ pool, schema, codec });
  await sealed.migrate();
  await using polling = createPawl({ url: database.url, schema, codec, listen: false });
  const run = await polling.start(chat, 1);
  const seen = collect(polling.stream<string>(run.id, "tokens"));
  await run.signal("close");
  await sealed.worker({ workflows: [chat] }).start();
  expect(valuesOf(await seen)).toEqual(["word 1", "end"]);
  const { rows } = await pool.query(
    `select name, position, value ->> 'codec' as codec, step, attempt, is_first, is_closing from "${schema}".streams
      where run_id = $1 order by position`,
    [run.id],
  );
  expect(rows).toEqual([
    {
      name: "tokens",
      position: 1,
      codec: "aes-gcm",
      step: "llm",
      attempt: 1,
      is_first: true,
      is_closing: false,
    },
    {
      name: "tokens",
      position: 2,
      codec: "aes-gcm",
      step: null,
      attempt: null,
      is_first: false,
      is_closing: false,
    },
    {
      name: "tokens",
      position: 3,
      codec: null,
      step: null,
      attempt: null,
      is_first: false,
      is_closing: true,
    },
  ]);
  await using plain = createPawl({ pool, schema });
  await expect(collect(plain.stream(run.id, "tokens"))).rejects.toMatchObject({ code: "CODEC_MISSING" });
});

test("a thousand tokens written as they come cost few commits, and none is missed by a reader beside", async ({
  pool,
  schema,
}) => {
  const talk = workflow({ name: "talk", version: 1 }, async (ctx) => {
    await ctx.step("llm", async ({ stream }) => {
      const out = stream<number>("tokens");
      let last = Promise.resolve();
      for (let n = 1; n <= 1_000; n++) {
        last = out.write(n);
        if (n % 10 === 0) await new Promise<void>((resolve) => void setImmediate(resolve));
      }
      await last;
    });
    await ctx.stream("tokens").close();
  });
  await using pawl = createPawl({ pool, schema });
  await pawl.migrate();
  const run = await pawl.start(talk);
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { position, value } of run.stream<number>("tokens"))
      seen.push(position === value ? value : -1);
  })();
  await pawl.worker({ workflows: [talk] }).start();
  await reading;
  expect(seen).toEqual(Array.from({ length: 1_000 }, (_, n) => n + 1));
  const { rows } = await pool.query<{ commits: number }>(
    `select count(distinct xmin::text)::integer as commits from "${schema}".stream`,
  );
  expect(rows[0]?.commits).toBeLessThan(150);
});
