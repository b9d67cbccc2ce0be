import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { EmbeddedPostgresError, startPostgres, type StartPostgresOptions } from "../src/index.ts";
import { makeFolder } from "./folders.ts";
import { Owner } from "./owner.ts";
import { isRoot } from "./processes.ts";
import { start } from "./start.ts";

const nobody = { uid: 65_534, gid: 65_534 };

test("an unknown option is refused by the name of the closest known one", async () => {
  const starting = startPostgres({ datadir: "x" } as StartPostgresOptions);
  await expect(starting).rejects.toMatchObject({ code: "INVALID_OPTION", details: { option: "datadir" } });
  await expect(starting).rejects.toThrow('did you mean "dir"?');
  await expect(starting).rejects.toBeInstanceOf(EmbeddedPostgresError);
});

test.each<StartPostgresOptions>([
  { port: 70_000 },
  { port: 1.5 },
  { strictPort: true },
  { dir: "" },
  { settings: { port: "5432" } },
  { settings: { "a b": "c" } },
])("the option %j is refused", async (options) => {
  await expect(startPostgres(options)).rejects.toMatchObject({ code: "INVALID_OPTION" });
});

test("a folder without a Postgres is refused as binaries", async () => {
  const binaries = await makeFolder();
  await expect(startPostgres({ binaries })).rejects.toMatchObject({
    code: "BINARIES_MISSING",
    details: { dir: binaries },
  });
});

test("a cluster of another version is refused, and left as it was", async () => {
  const dir = await makeFolder();
  const first = await start({ dir });
  await first.stop();
  const versionFile = join(dir, "data", "PG_VERSION");
  await writeFile(versionFile, "9\n");
  await expect(start({ dir })).rejects.toMatchObject({
    code: "DATA_DIR_VERSION",
    details: { found: 9, wanted: Number.parseInt(first.version, 10) },
  });
  expect(await readFile(versionFile, "utf8")).toBe("9\n");
});

test("a folder with a cluster or files of someone else's is refused", async () => {
  const cluster = await makeFolder();
  await writeFile(join(cluster, "PG_VERSION"), "18\n");
  await expect(start({ dir: cluster })).rejects.toMatchObject({ code: "DATA_DIR_FOREIGN" });
  expect(existsSync(join(cluster, "data"))).toBe(false);

  const files = await makeFolder();
  await mkdir(join(files, "data"));
  await writeFile(join(files, "data", "letters.txt"), "");
  await expect(start({ dir: files })).rejects.toMatchObject({ code: "DATA_DIR_FOREIGN" });
});

test("a setting that the server refuses is reported with the end of its log", async () => {
  const starting = start({ settings: { no_such_setting: "1" } });
  await expect(starting).rejects.toMatchObject({ code: "START_FAILED" });
  await expect(starting).rejects.toThrow('unrecognized configuration parameter "no_such_setting"');
});

test("a folder that cannot be made is refused", async () => {
  const file = join(await makeFolder(), "file");
  await writeFile(file, "");
  await expect(start({ dir: join(file, "postgres") })).rejects.toMatchObject({
    code: "DATA_DIR_UNREACHABLE",
  });
});

test.runIf(isRoot)("root is told which folder keeps the server's user from its data", async () => {
  const closed = join(await makeFolder(), "closed");
  await mkdir(closed, { mode: 0o700 });
  const starting = start({ dir: join(closed, "postgres") });
  await expect(starting).rejects.toMatchObject({ code: "DATA_DIR_UNREACHABLE", details: { closed } });
  await expect(starting).rejects.toThrow(`chmod o+x ${closed}`);
  await chmod(closed, 0o711);
  await start({ dir: join(closed, "postgres") });
});

test.runIf(isRoot)("a user is told that a folder is someone else's", async () => {
  const dir = await makeFolder();
  const mine = await start({ dir });
  await using stranger = new Owner({ dir }, nobody);
  expect((await stranger.failed()).code).toBe("DATA_DIR_UNREACHABLE");
  await mine.stop();
  await chmod(dir, 0o777);
  await using other = new Owner({ dir }, { uid: 54_321, gid: 54_321 });
  expect(await other.failed()).toMatchObject({ code: "DATA_DIR_UNREACHABLE", details: { uid: 54_321 } });
});
