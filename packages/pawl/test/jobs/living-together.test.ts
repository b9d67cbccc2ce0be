import { randomBytes } from "node:crypto";
import { createDatabase, dropDatabase } from "pawl-test-support";
import pg from "pg";
import { describe, expect } from "vitest";
import { createPawl, workflow } from "../../src/index.ts";
import { test, upTo, work } from "./job-test.ts";

const echo = workflow({ name: "echo", version: 1 }, async (_, input: unknown) => input);

describe("a caller's pool", () => {
  test("is not closed with the Pawl that used it, and has all its connections back", async ({
    database,
    home,
    queue,
  }) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    pool.on("error", () => {});
    const pawl = createPawl({ pool, schema: home });
    await work(pawl, { workflows: [echo], queues: [queue] });
    await (await pawl.start(echo, 1, { queue })).result();
    await pawl.close();
    expect(pool.waitingCount).toBe(0);
    expect(pool.idleCount).toBe(pool.totalCount);
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    const again = createPawl({ pool, schema: home });
    expect(await (await again.start(echo, 1, { queue })).status()).toBe("pending");
    await again.close();
    await pool.end();
  });

  test("of one connection is enough to start, execute and wait", async ({ database, home, queue }) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    pool.on("error", () => {});
    const pawl = createPawl({ pool, schema: home, listen: false });
    await work(pawl, { workflows: [echo], queues: [queue] });
    const runs = await Promise.all(upTo(10).map((input) => pawl.start(echo, input, { queue })));
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(upTo(10));
    await pawl.close();
    await pool.end();
  });
});

describe("two Pawls in one database", () => {
  test("in schemas of their own know nothing of each other", async ({ pool, schema }) => {
    await using left = createPawl({ pool, schema: `${schema}_a` });
    await using right = createPawl({ pool, schema: `${schema}_b` });
    await Promise.all([left.migrate(), right.migrate()]);
    const mine = await left.start(echo, "left", { key: "same" });
    const theirs = await right.start(echo, "right", { key: "same" });
    expect(mine.id).not.toBe(theirs.id);
    expect(await right.get(mine.id)).toBeNull();
    expect(await left.worker({ workflows: [echo] }).runUntilIdle()).toMatchObject({ completed: 1 });
    expect(await mine.result()).toBe("left");
    expect(await theirs.status()).toBe("pending");
    expect((await right.list()).runs.map(({ input }) => input)).toEqual(["right"]);
    expect((await right.workers()).length).toBe(0);
  });

  test("in one schema are one", async ({ open, queue }) => {
    const run = await open().start(echo, "shared", { queue });
    await open()
      .worker({ workflows: [echo], queues: [queue] })
      .runUntilIdle();
    expect(await open().handle(run.id).result()).toBe("shared");
  });
});

describe("migrating", () => {
  test("twice does nothing the second time", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema });
    const first = await pawl.migrate();
    expect(first.applied.length).toBeGreaterThan(0);
    expect(await pawl.migrate()).toEqual({ applied: [], version: first.version });
  });

  test("by eight at once is done once", async ({ pool, schema }) => {
    const pawls = upTo(8).map(() => createPawl({ pool, schema }));
    const answers = await Promise.all(pawls.map((pawl) => pawl.migrate()));
    expect(answers.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
    expect(new Set(answers.map(({ version }) => version)).size).toBe(1);
    await Promise.all(pawls.map((pawl) => pawl.close()));
  });

  test("happens by itself for whoever asks for it, at the first use", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema, autoMigrate: true });
    const runs = await Promise.all(upTo(5).map((input) => pawl.start(echo, input)));
    await pawl.worker({ workflows: [echo] }).runUntilIdle();
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(upTo(5));
  });

  test("is asked for where it has not happened", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema });
    await expect(pawl.start(echo, 1)).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
    await expect(pawl.worker({ workflows: [echo] }).start()).rejects.toMatchObject({
      code: "SCHEMA_MISSING",
    });
  });

  test("keeps what is there, while work goes on", async ({ open, queue }) => {
    const pawl = open();
    await work(pawl, { workflows: [echo], queues: [queue] });
    const starting = pawl.startMany(
      echo,
      upTo(200).map((input) => ({ input })),
      { queue },
    );
    await Promise.all([open().migrate(), open().migrate()]);
    const runs = await starting;
    expect(await Promise.all(runs.map((run) => run.result()))).toEqual(upTo(200));
  });

  test("takes a schema of any name", async ({ pool }) => {
    const schema = `Odd "name" ${randomBytes(3).toString("hex")} ü`;
    await using pawl = createPawl({ pool, schema });
    await pawl.migrate();
    const run = await pawl.start(echo, "odd");
    await pawl.worker({ workflows: [echo] }).runUntilIdle();
    expect(await run.result()).toBe("odd");
  });
});

test("a database in another time zone and date style changes nothing", async () => {
  const database = await createDatabase("empty");
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await admin.query(`alter database ${database.name} set timezone = 'Asia/Kathmandu'`);
  await admin.query(`alter database ${database.name} set datestyle = 'SQL, DMY'`);
  await admin.query(`alter database ${database.name} set intervalstyle = 'sql_standard'`);
  await admin.end();
  {
    await using pawl = createPawl({ url: database.url, autoMigrate: true });
    const at = new Date(Date.now() + 3_600_000);
    const later = await pawl.start(echo, 1, { at });
    expect(await pawl.get(later.id)).toMatchObject({ dueAt: at });
    const run = await pawl.start(echo, { when: at });
    await pawl.worker({ workflows: [echo] }).runUntilIdle();
    expect(await run.result()).toEqual({ when: at });
    expect(Math.abs((await pawl.get(run.id))!.endedAt!.getTime() - Date.now())).toBeLessThan(10_000);
  }
  await dropDatabase(database);
});
