import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";

const tables = ["run", "ready", "pack", "lease", "parked", "event", "inbox", "worker"];

/** What administrators do while work goes on: tables locked, rewritten, indexed anew, dumped. */
export const maintenance: Scene = {
  name: "maintenance",
  faults: ["table locked", "VACUUM FULL", "REINDEX CONCURRENTLY", "all tables dumped"],
  async act({ rng, isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    const hands = await Promise.all([ground.hire({ lease: 2_000 }), ground.hire({ lease: 2_000 })]);
    const load = new Load(ground.pawl, 40);
    await pause(500);
    const lockMs = isLong ? 30_000 : 3_000;
    for (const table of isLong ? tables : [rng.pick(tables), "worker", "event"]) {
      const client = await ground.pool.connect();
      await client.query("begin");
      await client.query(`lock table pawl.${table} in access exclusive mode`);
      await pause(lockMs);
      await client.query("commit");
      client.release();
      landed("table locked");
      await pause(300);
    }
    for (const table of tables) {
      await ground.pool.query(`vacuum full pawl.${table}`);
      landed("VACUUM FULL");
      await ground.pool.query(`reindex table concurrently pawl.${table}`);
      landed("REINDEX CONCURRENTLY");
    }
    await dump(ground);
    landed("all tables dumped");
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    const storms = hands.map(({ lines }) => lines.filter(({ level }) => level !== "info").length);
    figure(
      `${load.started.length} runs, ${load.refused} starts not acknowledged, drained ${drainMs} ms after the last of it; warnings of each worker: ${storms.join(", ")}`,
    );
    // A few for every lock and every lease, not one for every call.
    if (storms.some((lines) => lines > 500)) report("I19", "workers complain without end", storms);
  },
};

/** As `pg_dump` does, which is not everywhere: all tables, as they were at one moment, each locked against changes of its shape. */
async function dump(ground: Ground): Promise<void> {
  const client = await ground.pool.connect();
  await client.query("begin isolation level repeatable read read only");
  for (const table of tables) await client.query(`lock table pawl.${table} in access share mode`);
  for (const table of tables) await client.query(`select to_json(t) from pawl.${table} t`);
  await client.query("commit");
  client.release();
}
