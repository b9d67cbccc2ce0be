import { test } from "pawl-test-support";
import { expect } from "vitest";
import { z } from "zod";
import { aesGcmCodec, createPawl, ref, workflow } from "../../src/index.ts";
import { inBothPlaces } from "./places.ts";

const published = {
  progress: z.object({ done: z.number() }),
  finishedAt: z.date(),
};
const work = workflow({ name: "work", version: 1, published }, async (ctx, parts: number) => {
  for (let done = 1; done <= parts; done++) await ctx.publish("progress", { done });
  await ctx.waitForSignal("finish");
  await ctx.publish("finishedAt", new Date(0));
});

inBothPlaces(
  "what a run has published can be read while it runs and after its end, from anywhere",
  async (place) => {
    const pawl = await place.open();
    const elsewhere = await place.open();
    const run = await pawl.start(work, 3);
    expect(await run.published("progress")).toBeUndefined();
    expect(await run.published()).toEqual({});
    await pawl.worker({ workflows: [work] }).start();
    await expect.poll(async () => (await run.published("progress"))?.done).toBe(3);
    expect(await run.published("finishedAt")).toBeUndefined();

    const other = elsewhere.handle(run.id, ref<typeof work>("work", 1));
    await other.signal("finish");
    await other.result();
    expect(await other.published()).toEqual({ progress: { done: 3 }, finishedAt: new Date(0) });
    expect(await elsewhere.published(run.id, "finishedAt")).toEqual(new Date(0));
    expect(await elsewhere.published(run.id)).toEqual({ progress: { done: 3 }, finishedAt: new Date(0) });
  },
);

inBothPlaces("reading what is not there is refused clearly", async (place) => {
  const pawl = await place.open();
  const run = await pawl.start(work, 1);
  await expect(run.published("progres" as never)).rejects.toMatchObject({ code: "INVALID_NAME" });
  await expect(pawl.published(run.id, "")).rejects.toMatchObject({ code: "INVALID_NAME" });
  expect(await pawl.published(run.id, "progres")).toBeUndefined();
  const missing = `${run.id.slice(0, -4)}ffff`;
  await expect(pawl.published(missing, "progress")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  await expect(pawl.published("no id")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
});

test("published values are encrypted, and the view shows the newest of each key", async ({
  pool,
  schema,
}) => {
  const codec = aesGcmCodec({ keys: [{ id: "1", key: new Uint8Array(32).fill(1) }] });
  await using sealed = createPawl({ pool, schema, codec });
  await sealed.migrate();
  await sealed.worker({ workflows: [work] }).start();
  const run = await sealed.start(work, 2);
  await run.signal("finish");
  await run.result();
  expect(await run.published("progress")).toEqual({ done: 2 });

  await using plain = createPawl({ pool, schema });
  await expect(plain.published(run.id, "progress")).rejects.toMatchObject({ code: "CODEC_MISSING" });
  const { rows } = await pool.query(
    `select key, value ->> 'codec' as codec, at is not null as dated from "${schema}".published where run_id = $1 order by key`,
    [run.id],
  );
  expect(rows).toEqual([
    { key: "finishedAt", codec: "aes-gcm", dated: true },
    { key: "progress", codec: "aes-gcm", dated: true },
  ]);
});

test("reading costs the same however often a key was published", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema });
  await pawl.migrate();
  await pawl.worker({ workflows: [work] }).start();
  const run = await pawl.start(work, 300);
  await expect.poll(async () => (await run.published("progress"))?.done, { timeout: 20_000 }).toBe(300);
  const { rows } = await pool.query<{ "QUERY PLAN": string }>(
    `explain (analyze, buffers, costs off, timing off) select * from "${schema}".published where run_id = '${run.id}'`,
  );
  const [, hit = "0"] = /shared hit=(\d+)/.exec(rows.map((row) => row["QUERY PLAN"]).join("\n")) ?? [];
  expect(Number(hit)).toBeLessThan(60);
});
