import { describe, expect, test } from "vitest";
import { findPostgres } from "../../../scripts/postgres-versions.mjs";
import { startPostgres } from "../src/index.ts";
import { makeFolder } from "./folders.ts";
import { query } from "./query.ts";
import { start } from "./start.ts";

// Installed by `node scripts/postgres-versions.mjs`.
describe.each([14, 15, 16, 17])("Postgres %i", (major) => {
  const binaries = findPostgres(major);

  test.skipIf(binaries === undefined)("starts, keeps its data and starts again", async () => {
    const dir = await makeFolder();
    const first = await start({ dir, binaries: binaries! });
    expect(first.version).toMatch(new RegExp(`^${major}\\.`));
    expect(await query(first.url, "show server_version")).toBe(first.version);
    await query(first.url, "create table kept as select 42 as answer");
    await expect(startPostgres({ dir })).rejects.toMatchObject({ code: "ALREADY_RUNNING" });
    await first.stop();
    await expect(startPostgres({ dir })).rejects.toMatchObject({
      code: "DATA_DIR_VERSION",
      details: { found: major },
    });
    const second = await start({ dir, binaries: binaries! });
    expect(await query(second.url, "select answer from kept")).toBe(42);
  });
});
