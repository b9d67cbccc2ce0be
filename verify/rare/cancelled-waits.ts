import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";

/**
 * Commits wait for a standby that does not answer, and somebody cancels the waiting: they have committed here, and their
 * callers are told with a warning only. Then they wait again, until their callers give up.
 */
export const cancelledWaits: Scene = {
  name: "cancelled-waits",
  faults: ["COMMIT whose wait for a standby was cancelled"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    await Promise.all([ground.hire(), ground.hire()]);
    const load = new Load(ground.pawl, 20);
    await pause(500);
    for (let round = 0; round < (isLong ? 20 : 2); round++) {
      await set(ground, "'nobody'");
      for (let n = 0; n < 20; n++) {
        const { rowCount } = await ground.pool.query(
          "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
        );
        landed("COMMIT whose wait for a standby was cancelled", rowCount ?? 0);
        await pause(100);
      }
      await set(ground, "default");
      await pause(1_000);
    }
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    figure(`${load.started.length} runs, ${load.refused} starts not acknowledged, drained in ${drainMs} ms`);
  },
};

async function set(ground: Ground, standbys: string): Promise<void> {
  await ground.pool.query(`alter system set synchronous_standby_names = ${standbys}`);
  await ground.pool.query("select pg_reload_conf()");
}
