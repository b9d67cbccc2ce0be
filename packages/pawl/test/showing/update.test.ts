import { test } from "pawl-test-support";
import { expect } from "vitest";
import { z } from "zod";
import { aesGcmCodec, createPawl, PawlError, ref, workflow } from "../../src/index.ts";
import { inBothPlaces } from "./places.ts";

const updates = {
  setAddress: { input: z.object({ city: z.string() }), output: z.object({ old: z.string().nullable() }) },
  refuse: { input: z.undefined() },
};
const order = workflow({ name: "order", version: 1, updates }, async (ctx) => {
  let city: string | null = null;
  ctx.onUpdate("setAddress", async (address, inner) => {
    const old = city;
    city = await inner.step("look up", () => address.city.trim());
    return { old };
  });
  ctx.onUpdate("refuse", () => {
    throw Object.assign(new Error("It is shipped."), { code: "SHIPPED" });
  });
  await ctx.waitForSignal("ship");
  return city;
});
const orderElsewhere = ref<typeof order>("order", 1);

inBothPlaces("an update is answered by the running workflow, from any process", async (place) => {
  const pawl = await place.open();
  const elsewhere = await place.open();
  const run = await pawl.start(order);
  const early = run.update("setAddress", { city: " Ulm " });
  await pawl.worker({ workflows: [order] }).start();
  expect(await early).toEqual({ old: null });
  const other = elsewhere.handle(run.id, orderElsewhere);
  const answer = await other.update("setAddress", { city: "Bonn" }, { timeout: "10s" });
  expect(answer.old).toBe("Ulm");
  await other.signal("ship");
  expect(await other.result()).toBe("Bonn");
  const history = await other.history();
  expect(history.find(({ kind }) => kind === "update_received")?.data).toMatchObject({
    payload: { city: " Ulm " },
  });
  expect(history.find(({ kind }) => kind === "update_answered")?.data).toEqual({
    status: "answered",
    output: { old: null },
  });
});

inBothPlaces(
  "an update that is repeated with its idempotency key gets the same answer, also after the end",
  async (place) => {
    const pawl = await place.open();
    await pawl.worker({ workflows: [order] }).start();
    const run = await pawl.start(order);
    const key = { idempotencyKey: "click-1" };
    const both = [
      run.update("setAddress", { city: "Ulm" }, key),
      run.update("setAddress", { city: "Bonn" }, key),
    ];
    expect(await Promise.all(both)).toEqual([{ old: null }, { old: null }]);
    await expect(pawl.update(run.id, "refuse", undefined, key)).rejects.toMatchObject({
      code: "KEY_CONFLICT",
    });
    await run.signal("ship");
    expect(await run.result()).toMatch(/Ulm|Bonn/);
    expect(await run.update("setAddress", { city: "Trier" }, key)).toEqual({ old: null });
  },
);

inBothPlaces("what went wrong is told clearly", async (place) => {
  const pawl = await place.open();
  const run = await pawl.start(order);
  const unserved = await pawl.start(order);
  await expect(run.update("setAddress", { city: 1 } as never)).rejects.toMatchObject({
    code: "INVALID_PAYLOAD",
  });
  await expect(run.update("setAdress" as never, {} as never)).rejects.toMatchObject({ code: "INVALID_NAME" });
  await expect(pawl.update(run.id, "", 1)).rejects.toMatchObject({ code: "INVALID_NAME" });
  await expect(run.update("refuse", undefined, { timeuot: 1 } as never)).rejects.toMatchObject({
    code: "INVALID_OPTION",
  });
  await expect(pawl.update("nobody", "a")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  await expect(pawl.update(`${run.id.slice(0, -4)}ffff`, "a")).rejects.toMatchObject({
    code: "RUN_NOT_FOUND",
  });
  await expect(
    unserved.update("refuse", undefined, { timeout: 30, idempotencyKey: "k" }),
  ).rejects.toMatchObject({
    code: "UPDATE_TIMED_OUT",
  });
  const abandoned = unserved
    .update("refuse", undefined, { idempotencyKey: "k" })
    .catch((error: unknown) => error);
  await unserved.cancel();
  expect(await abandoned).toMatchObject({
    code: "RUN_ENDED",
    message: expect.stringContaining("before it answered"),
  });

  await pawl.worker({ workflows: [order] }).start();
  const failed = await run.update("refuse").catch((error: unknown) => error);
  expect(failed).toMatchObject({
    code: "UPDATE_FAILED",
    cause: { message: "It is shipped.", code: "SHIPPED" },
  });
  // The caller does not know the schema: the run refuses.
  const refused = await pawl.update(run.id, "setAddress", { city: 1 }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: "INVALID_PAYLOAD", message: expect.stringContaining("city") });
  await run.signal("ship");
  await run.result();
  await expect(run.update("refuse")).rejects.toMatchObject({ code: "RUN_ENDED" });
});

test("updates and answers are encrypted, and those who wait poll slowly and together", async ({
  pool,
  schema,
  database,
}) => {
  const codec = aesGcmCodec({ keys: [{ id: "1", key: new Uint8Array(32).fill(1) }] });
  await using worker = createPawl({ pool, schema, codec });
  await worker.migrate();
  await using caller = createPawl({ url: database.url, schema, codec, listen: false });
  const run = await caller.start(order);
  const waiting = ["marzipan", "nougat"].map((city) => run.update("setAddress", { city }));
  await worker.worker({ workflows: [order] }).start();
  expect(await Promise.all(waiting)).toContainEqual({ old: null });
  const { rows } = await pool.query<{ text: string }>(
    `select e::text as text from "${schema}".event e union all select i::text from "${schema}".inbox i`,
  );
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.map(({ text }) => text).join("\n")).not.toMatch(/marzipan|nougat/);
  expect((await run.history()).map(({ data }) => JSON.stringify(data)).join()).toContain("marzipan");
});

test("a caller that closes is told, and the run goes on", async () => {
  const pawl = createPawl({ memory: true });
  const run = await pawl.start(order);
  const waiting = run.update("refuse").catch((error: unknown) => error);
  await expect.poll(async () => (await pawl.get(run.id))?.status).toBe("pending");
  await pawl.close();
  expect(PawlError.is(await waiting, "CLOSED")).toBe(true);
});
