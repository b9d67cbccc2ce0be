import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";

/** What an administrator may set, and what the server says when it takes effect. */
const settings: Readonly<Record<string, string>> = {
  lock_timeout: "due to lock timeout",
  statement_timeout: "due to statement timeout",
  idle_in_transaction_session_timeout: "due to idle-in-transaction timeout",
  transaction_timeout: "due to transaction timeout",
};

/** Somebody gives Pawl's role no time, by each of the ways there are, while a table is locked now and then. */
export const roleTimeouts: Scene = {
  name: "role-timeouts",
  faults: Object.keys(settings),
  async act({ isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    await ground.pool.query("create role app login superuser password 'app'");
    const through = new URL(ground.url);
    [through.username, through.password] = ["app", "app"];
    const url = through.href;
    await Promise.all([ground.hire({ url, lease: 2_000 }), ground.hire({ url, lease: 2_000 })]);
    // In each transaction its function takes longer than it will be allowed to.
    const load = new Load(ground.connect({ url }), 20, 120);
    const countLog = await logCounter(ground);
    for (const [setting, says] of Object.entries(settings)) {
      const before = await countLog(says);
      await ground.pool.query(`alter role app set ${setting} = '60ms'`);
      await reconnect(ground);
      for (let n = 0; n < (isLong ? 60 : 6); n++) {
        await lockFor(ground, 400);
        await pause(100);
      }
      await ground.pool.query(`alter role app reset ${setting}`);
      await reconnect(ground);
      landed(setting, (await countLog(says)) - before);
    }
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    figure(`${load.started.length} runs, ${load.refused} starts not acknowledged, drained in ${drainMs} ms`);
  },
};

/** A role's settings are for connections that begin. */
async function reconnect(ground: Ground): Promise<void> {
  await ground.pool.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'");
}

async function lockFor(ground: Ground, ms: number): Promise<void> {
  const client = await ground.pool.connect();
  await client.query("begin");
  await client.query("lock table pawl.event in exclusive mode");
  await pause(ms);
  await client.query("commit");
  client.release();
}

/** How often the server's log says something. */
async function logCounter(ground: Ground): Promise<(says: string) => Promise<number>> {
  const file = join(ground.server.dataFolder, "..", "postgres.log");
  return async (says) => (await readFile(file, "utf8")).split(says).length - 1;
}
