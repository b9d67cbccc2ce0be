import { describe, expect } from "vitest";
import { createDatabase, dropDatabase, test } from "./database.ts";

describe("a test's database", () => {
  test("is the file's own", async ({ pool, database }) => {
    const { rows } = await pool.query("select current_database() as name");
    expect(rows).toEqual([{ name: database.name }]);
  });

  test("offers each test a schema of its own", async ({ pool, schema }) => {
    await pool.query(`create schema ${schema}`);
    await pool.query(`create table ${schema}.note (id int)`);
    const { rowCount } = await pool.query(`select id from ${schema}.note`);
    expect(rowCount).toBe(0);
  });

  test("can be dropped while connections are open", async () => {
    const extra = await createDatabase("empty");
    await dropDatabase(extra);
    await dropDatabase(extra);
  });
});
