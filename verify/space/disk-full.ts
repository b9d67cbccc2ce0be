import { execFile } from "node:child_process";
import { chmod, mkdtemp, open, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";

const run = promisify(execFile);

/** A file system of its own that a few megabytes fill, in memory. Null where this user may not make one. */
async function mountSmall(
  megabytes: number,
): Promise<(AsyncDisposable & { readonly folder: string }) | null> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-small-disk-"));
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder]);
  } catch {
    await rm(folder, { recursive: true });
    return null;
  }
  await chmod(folder, 0o777);
  return {
    folder,
    async [Symbol.asyncDispose]() {
      await run("umount", ["--lazy", folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Takes all that is left of a file system. */
async function fill(folder: string): Promise<string> {
  const name = join(folder, "filler");
  const file = await open(name, "w");
  const chunk = Buffer.alloc(1024 * 1024, 1);
  try {
    for (let left = (await statfs(folder)).bavail; left > 0; left = (await statfs(folder)).bavail)
      await file.write(chunk);
  } catch {
    // It is full, which is what was wanted.
  } finally {
    await file.close();
  }
  return name;
}

/** The server's disk is full for a while. Nothing is acknowledged that is not there, and all goes on when there is space. */
export const diskFull: Scene = {
  name: "disk-full",
  faults: ["the server had no space left (53100, or it went down)", "start refused while the disk was full"],
  async act({ isLong, landed, figure, leaveOut, report }) {
    await using disk = await mountSmall(300);
    if (disk === null) {
      leaveOut("this user may not mount a tmpfs. Run it as root, or under unshare --map-root-user --mount.");
      return;
    }
    // Segments that are there already are used again: data runs out of space before the log does.
    const settings = { min_wal_size: "96MB", max_wal_size: "96MB", wal_init_zero: "on" };
    await using ground = await Ground.open(settings, join(disk.folder, "postgres"));
    await ground.pool.query("create table public.bulk (filling text)");
    for (let n = 0; n < 6; n++) {
      await ground.pool.query(
        "insert into public.bulk select repeat('x', 1000) from generate_series(1, 15000)",
      );
      await ground.pool.query("truncate public.bulk; checkpoint");
    }
    await Promise.all([ground.hire({ lease: 2_000 }), ground.hire({ lease: 2_000 })]);
    const load = new Load(ground.pawl, 40);
    await pause(1_000);
    for (let round = 0; round < (isLong ? 10 : 1); round++) {
      const filler = await fill(disk.folder);
      const refusedBefore = load.refused;
      for (const until = performance.now() + 8_000; performance.now() < until;) {
        const code = await ground.pool
          .query("insert into public.bulk select repeat('x', 1000) from generate_series(1, 200)")
          .then(
            () => null,
            (error: unknown) => (error as { readonly code?: string }).code ?? "no answer",
          );
        if (code !== null) landed("the server had no space left (53100, or it went down)");
        if (code !== null) landed(`error ${code} while the disk was full`);
        await pause(50);
      }
      await rm(filler);
      await pause(1_000);
      landed("start refused while the disk was full", load.refused - refusedBefore);
      await ground.until(
        "the database takes rows again",
        () =>
          ground.pool.query("truncate public.bulk").then(
            () => true,
            () => false,
          ),
        30_000,
      );
    }
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    figure(`${load.started.length} runs, ${load.refused} starts not acknowledged, drained in ${drainMs} ms`);
  },
};
