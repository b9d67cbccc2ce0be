import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";
import { createTemporaryFolder } from "../scenes/temporary-folder.ts";
import { chain } from "../scenes/workflows.ts";

const run = promisify(execFile);

/** As `pg_basebackup` does: files, then the log of what happened to them meanwhile. */
async function backUp(ground: Ground, to: string): Promise<void> {
  const { dataFolder } = ground.server;
  const client = await ground.pool.connect();
  try {
    await client.query("select pg_backup_start('verify', true)");
    // Files that vanish meanwhile are made again from the log.
    await run("cp", ["-a", `${dataFolder}/.`, to]).catch(() => {});
    const { rows } = await client.query<{ label: string }>(
      "select labelfile as label from pg_backup_stop(false)",
    );
    await run("cp", ["-a", `${dataFolder}/pg_wal/.`, join(to, "pg_wal")]).catch(() => {});
    await writeFile(join(to, "backup_label"), rows[0]!.label);
    await rm(join(to, "postmaster.pid"), { force: true });
  } finally {
    client.release();
  }
}

/**
 * The server comes back as it was some seconds ago: a backup that was restored, or a standby that lagged behind. Callers
 * were told of runs that are gone; workers hold runs, under leases and epochs that the server has never heard of, or knows at an
 * earlier place of their histories. What is there goes on from there, and no history is torn.
 */
export const olderPoint: Scene = {
  name: "older-point",
  faults: ["server set back to an earlier state", "acknowledged run lost", "run held across it"],
  async act({ rng, isLong, landed, figure, report }) {
    await using folder = await createTemporaryFolder();
    await using ground = await Ground.open({}, join(folder.path, "server"));
    await Promise.all([ground.hire({ lease: 2_000 }), ground.hire({ lease: 2_000 })]);
    for (let round = 0; round < (isLong ? 20 : 2); round++) {
      const load = new Load(ground.pawl, 30);
      // In their hands when the copy is made, and when it comes back.
      const long = Array.from({ length: 20 }, () => ({ input: { steps: 60, stepMs: 100 } }));
      await ground.pawl.startMany(chain, long);
      await pause(1_000);
      const copy = join(folder.path, `copy-${round}`);
      await run("mkdir", [copy]);
      // What is acknowledged while the copy is made may be in it.
      const safe = load.started.slice();
      await backUp(ground, copy);
      const maybe = load.started.length;
      await pause(rng.between(500, 3_000));
      const heldBefore = await ground.value(
        "select count(*)::int from pawl.live_runs where worker_id is not null",
      );
      await load.end();
      const lostLater = load.started.slice(maybe);
      await ground.server.whileDown(async () => {
        const { dataFolder } = ground.server;
        await run("chown", ["--reference", dataFolder, copy]);
        await run("chmod", ["--reference", dataFolder, copy]);
        await run("chown", ["--reference", dataFolder, join(copy, "backup_label")]);
        await rm(dataFolder, { recursive: true });
        await run("mv", [copy, dataFolder]);
      });
      landed("server set back to an earlier state");
      landed("run held across it", heldBefore);
      landed("acknowledged run lost", await countMissing(ground, lostLater));
      await checkAcknowledged(ground, report, safe);
      const drainMs = await ground.drain(90_000);
      await checkGround(ground, report);
      figure(`round ${round + 1}: ${heldBefore} runs held, drained in ${drainMs} ms`);
    }
  },
};

async function countMissing(ground: Ground, ids: readonly string[]): Promise<number> {
  const there = await ground.value("select count(*)::int from pawl.run where id = any ($1)", [[...ids]]);
  return ids.length - there;
}
