import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readlink, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { copyBinaries } from "./binaries.ts";
import { makeFolder } from "./folders.ts";
import { Owner } from "./owner.ts";
import { isRoot } from "./processes.ts";
import { query } from "./query.ts";

const nobody = { uid: 65_534, gid: 65_534 };

// As npm leaves the packages when no install script may run.
describe.runIf(process.platform === "linux")("without install scripts", () => {
  test("the libraries' links are made when they are first needed, by whoever comes first", async () => {
    const binaries = join(await makeFolder(), "native");
    await copyBinaries(binaries, "without links");
    await using first = new Owner({ binaries });
    await using second = new Owner({ binaries });
    await Promise.all([first.started(), second.started()]);
    expect(await readlink(join(binaries, "lib", "libpq.so.5"))).toMatch(/^libpq\.so\.5\.\d+$/);
  });

  test.runIf(isRoot)("they are made in a copy if the packages cannot be written", async () => {
    const folder = await makeFolder();
    const binaries = join(folder, "native");
    await copyBinaries(binaries, "without links");
    const env = { TMPDIR: join(folder, "tmp") };
    await mkdir(env.TMPDIR);
    await chmod(env.TMPDIR, 0o1777);

    await using owner = new Owner({ binaries }, { ...nobody, env });
    expect(await query((await owner.started()).url, "select 1")).toBe(1);
    expect(existsSync(join(binaries, "lib", "libpq.so.5"))).toBe(false);
    expect(await copiesIn(env.TMPDIR)).toHaveLength(1);
  });
});

test.runIf(isRoot)(
  "binaries that the server's user cannot reach are copied once, and again if need be",
  async () => {
    const folder = await makeFolder();
    const binaries = join(folder, "closed", "native");
    await copyBinaries(binaries, "with links");
    await chmod(join(folder, "closed"), 0o700);
    // As npm installs under a strict umask.
    await chmod(join(binaries, "share"), 0o700);
    const env = { TMPDIR: join(folder, "tmp") };
    await mkdir(env.TMPDIR, { mode: 0o755 });

    await using first = new Owner({ binaries }, { env });
    await using second = new Owner({ binaries }, { env });
    const started = await Promise.all([first.started(), second.started()]);
    for (const { url } of started) expect(await query(url, "select 1")).toBe(1);
    const copies = await copiesIn(env.TMPDIR);
    expect(copies).toHaveLength(1);
    const copy = join(env.TMPDIR, copies[0]!);
    await Promise.all([first.stop(), second.stop()]);

    // As a cleaner of temporary folders might.
    await rm(join(copy, "share", "postgresql", "postgres.bki"));
    await using third = new Owner({ binaries }, { env });
    expect(await query((await third.started()).url, "select 1")).toBe(1);
    expect(existsSync(join(copy, "share", "postgresql", "postgres.bki"))).toBe(true);

    // As someone might who wants us to run a program of theirs.
    await chmod(copy, 0o777);
    await using fourth = new Owner({ binaries }, { env });
    expect(await fourth.failed()).toMatchObject({ code: "BINARIES_UNUSABLE" });
  },
);

async function copiesIn(dir: string): Promise<readonly string[]> {
  return (await readdir(dir)).filter((name) => /^pawl-postgres-[0-9a-f]{16}$/.test(name));
}
