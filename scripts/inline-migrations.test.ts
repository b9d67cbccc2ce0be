import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

describe("inlining the migrations", () => {
  let folder: string;
  let target: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "pawl-migrations-"));
    target = join(folder, "migrations.generated.ts");
  });

  afterEach(() => rm(folder, { recursive: true, force: true }));

  function inline(...options: readonly string[]): { status: number | null; stderr: string } {
    const script = join(import.meta.dirname, "inline-migrations.mjs");
    return spawnSync(process.execPath, [script, folder, target, ...options], { encoding: "utf8" });
  }

  async function load(): Promise<unknown> {
    const { migrations } = (await import(target)) as { migrations: unknown };
    return migrations;
  }

  test("keeps every letter, the order and the marks", async () => {
    const first = "select '\\n', `x`, ${y}, '\\${z}';\n-- not breaking\n";
    const second = "-- no transaction\n-- breaking\ncreate index concurrently i on t (c);\n";
    await writeFile(join(folder, "0002_add_index.sql"), second);
    await writeFile(join(folder, "0001_first.sql"), first);
    expect(inline()).toMatchObject({ status: 0, stderr: "" });
    expect(await load()).toEqual([
      { version: 1, name: "first", transaction: true, breaking: false, sql: first },
      { version: 2, name: "add_index", transaction: false, breaking: true, sql: second },
    ]);
  });

  test("tells a stale file from a fresh one", async () => {
    await writeFile(join(folder, "0001_first.sql"), "select 1;\n");
    inline();
    expect(inline("--check").status).toBe(0);
    await writeFile(join(folder, "0001_first.sql"), "select 2;\n");
    expect(inline("--check")).toMatchObject({ status: 1, stderr: expect.stringContaining("stale") });
  });

  test("refuses a gap in the numbers", async () => {
    await writeFile(join(folder, "0002_second.sql"), "select 1;\n");
    expect(inline()).toMatchObject({ status: 1, stderr: expect.stringContaining("without gaps") });
  });
});
