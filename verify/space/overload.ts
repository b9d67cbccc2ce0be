import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";
import { drainRate } from "./drain-rate.ts";
import { hotTables, isSwollen, kilobytes, sizeOf } from "./hot-tables.ts";

/** Twice as much as can be done, for a while, and nobody who cleans up: it piles up, drains, and the space comes back. */
export const overload: Scene = {
  name: "overload",
  faults: ["run that had to wait in a pile"],
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    for (const table of hotTables)
      await ground.pool.query(`alter table pawl.${table} set (autovacuum_enabled = off)`);
    const hands = await Promise.all([ground.hire({ lease: "15s" }), ground.hire({ lease: "15s" })]);
    const most = await drainRate(ground);
    const before = await Promise.all(hands.map((hand) => hand.residentMegabytes()));
    const load = new Load(ground.pawl, 2 * most);
    await pause(isLong ? 600_000 : 10_000);
    await load.end();
    const pile = await ground.value(
      "select ((select count(*) from pawl.ready) + (select coalesce(sum(cardinality(run_ids)), 0) from pawl.pack))::int",
    );
    landed("run that had to wait in a pile", pile);
    const after = await Promise.all(hands.map((hand) => hand.residentMegabytes()));
    const drainMs = await ground.drain(isLong ? 1_800_000 : 120_000);
    const swollen = await sizeOf(ground);
    for (const table of [...hotTables, ...hotTables]) await ground.pool.query(`vacuum pawl.${table}`);
    const vacuumed = await sizeOf(ground);
    for (const table of hotTables) await ground.pool.query(`vacuum full pawl.${table}`);
    if (isSwollen(vacuumed, await sizeOf(ground)))
      report("I21", "hot tables keep the space that dead rows took", { swollen, vacuumed });
    if (after.some((megabytes, index) => megabytes > before[index]! + 200))
      report("I19", "workers grow with the pile before them", { before, after });
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    figure(
      `${load.started.length} runs at 2 x ${most.toFixed(0)}/s, ${pile} waited at the end, drained in ${drainMs} ms; workers had ${before.join(" and ")} MB before and ${after.join(" and ")} after; hot tables and indexes ${kilobytes(swollen.tables + swollen.indexes)} kB, vacuumed ${kilobytes(vacuumed.tables + vacuumed.indexes)} kB`,
    );
  },
};
