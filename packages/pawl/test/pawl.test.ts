import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, workflow, type Pawl } from "../src/index.ts";

const part = workflow({ name: "part", version: 1 }, async (ctx, count: number) =>
  ctx.step("double", () => count * 2),
);

const order = workflow({ name: "order", version: 1 }, async (ctx, id: number) => {
  const held = await ctx.step("hold", () => ({ id, held: true }));
  const [left, right] = await Promise.all([ctx.call(part, 1), ctx.call(part, 2)]);
  await ctx.sleep(50);
  const carrier = await ctx.waitForSignal<string>("shipped");
  return { ...held, parts: left + right, carrier };
});

async function carryThrough(pawl: Pawl): Promise<void> {
  await pawl.worker({ workflows: [order, part] }).start();
  const run = await pawl.start(order, 7, { key: "order:7" });
  expect((await pawl.start(order, 7, { key: "order:7" })).id).toBe(run.id);
  await run.signal("shipped", "dhl", { idempotencyKey: "hook" });
  expect(await run.result()).toEqual({ id: 7, held: true, parts: 6, carrier: "dhl" });
  expect(await run.status()).toBe("completed");
  expect((await pawl.list({ workflow: "part", status: "completed" })).runs).toHaveLength(2);
}

describe("createPawl", () => {
  test("carries steps, children, a sleep and a signal through memory", async () => {
    await using pawl = createPawl({ memory: true });
    await pawl.migrate();
    await carryThrough(pawl);
  });

  test("carries the same through Postgres by its url", async ({ database, schema }) => {
    await using pawl = createPawl({ url: database.url, schema, autoMigrate: true });
    await carryThrough(pawl);
  });

  test("uses a caller's pool and leaves it open", async ({ pool, schema }) => {
    const pawl = createPawl({ pool, schema });
    await pawl.migrate();
    await carryThrough(pawl);
    await pawl.close();
    await pawl.close();
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  });

  test("works by polling alone", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, listen: false, autoMigrate: true });
    await carryThrough(pawl);
  });

  test("says what is missing", () => {
    expect(() => createPawl({})).toThrow("createPawl needs one of url, pool and { memory: true }.");
    expect(() => createPawl({ url: process.env["PAWL_NO_SUCH_VARIABLE"] })).toThrow(
      "The url given is undefined",
    );
    expect(() => createPawl({ url: "" })).toThrow("The url given is empty");
    expect(() => createPawl({ url: "localhost/shop" })).toThrow("must begin with postgres://");
    expect(() => createPawl("postgres://localhost" as never)).toThrow("createPawl({ url })");
    expect(() => createPawl({ memory: true, url: "postgres://localhost" })).toThrow("one of url, pool");
    expect(() => createPawl({ memory: true, shema: "x" } as never)).toThrow('Did you mean "schema"?');
  });

  test("does nothing more once it is closed", async () => {
    const pawl = createPawl({ memory: true });
    const worker = pawl.worker({ workflows: [part] });
    await worker.start();
    await pawl.close();
    await expect(pawl.start(part, 1)).rejects.toMatchObject({ code: "CLOSED" });
    await expect(worker.start()).rejects.toMatchObject({ code: "CLOSED" });
    await expect(pawl.migrate()).rejects.toMatchObject({ code: "CLOSED" });
    expect(() => pawl.worker({ workflows: [part] })).toThrow("closed");
  });

  test("takes no option of migrate it does not know", async () => {
    await using pawl = createPawl({ memory: true });
    await expect(pawl.migrate({ verifyonly: true } as never)).rejects.toThrow('Did you mean "verifyOnly"?');
  });

  test("migrates by itself for a handle made by an id alone", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, autoMigrate: true });
    const nobody = pawl.handle("01900000-0000-7000-8000-000000000000");
    await expect(nobody.result()).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  test("a result is refused as a start is where there is no schema", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema });
    const nobody = pawl.handle("01900000-0000-7000-8000-000000000000");
    await expect(nobody.result()).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
  });
});
