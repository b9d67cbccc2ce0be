import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { PawlError, type RunHandle } from "../../packages/pawl/src/index.ts";
import { pgbouncer } from "../../packages/pawl/test/postgres/pgbouncer.ts";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import type { Hand } from "../scenes/hand.ts";
import { createSceneStage, type Scene, type SceneTools } from "../scenes/scene.ts";
import { chain, order } from "../scenes/workflows.ts";
import { provesNothing, type Stage } from "../stage.ts";
import { PooledGround } from "./pooled-ground.ts";
import { leakable, Stranger } from "./stranger.ts";

/** Starts runs and signals them until told otherwise. Notes what was acknowledged; what was not may be there or not. */
class Callers {
  readonly started: string[] = [];
  refused = 0;
  readonly #pooled: PooledGround;
  readonly #going: Promise<unknown>;
  #isOver = false;

  constructor(pooled: PooledGround, count: number) {
    this.#pooled = pooled;
    this.#going = Promise.all(Array.from({ length: count }, () => this.#callOnAndOn()));
    // What goes wrong is told at the end.
    void this.#going.catch(() => {});
  }

  async #callOnAndOn(): Promise<void> {
    while (!this.#isOver) {
      const [one, other] = await Promise.all([
        this.#insist(() => this.#pooled.pawl.start(chain, { steps: 4, stepMs: 1 })),
        this.#insist(() => this.#pooled.pawl.start(order)),
      ]);
      for (const name of ["pay", "ship"])
        await this.#insist(() => other.signal(name, undefined, { idempotencyKey: name }));
      await this.#insist(() => one.result({ signal: AbortSignal.timeout(60_000) }));
      await this.#insist(() => (other as RunHandle).result({ signal: AbortSignal.timeout(60_000) }));
      this.started.push(one.id, other.id);
    }
  }

  /** As a caller does whose request is not answered. */
  async #insist<Answer>(act: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      try {
        return await act();
      } catch (error) {
        if (!PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
        this.refused += 1;
      }
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#going;
  }
}

/** Errors that a pooler causes where statements are prepared or connections are taken for one's own. */
const poolerErrors = /prepared statement|42P05|26000|does not exist|already exists/;

async function withLoad(
  tools: SceneTools,
  settings: Readonly<Record<string, string>>,
  workers: number,
  act: (pooled: PooledGround, hands: readonly Hand[]) => Promise<void>,
): Promise<void> {
  const { landed, figure, report } = tools;
  await using pooled = await PooledGround.open(settings);
  const { ground, bouncer } = pooled;
  const hands = await Promise.all(
    Array.from({ length: workers }, () => ground.hire({ url: bouncer.url, lease: 2_000 })),
  );
  await using stranger = new Stranger(bouncer.url);
  const callers = new Callers(pooled, 16);
  const before = await countEnded(pooled);
  await act(pooled, hands);
  const afterFault = callers.started.length;
  await ground.until(
    "callers get answers again",
    () => Promise.resolve(callers.started.length >= afterFault + 32),
    30_000,
  );
  await callers.end();
  await stranger.leave();
  const drainMs = await ground.drain();

  await checkAcknowledged(ground, report, callers.started);
  await checkGround(ground, report);
  if (stranger.leaks.length > 0)
    report("I22", "something was left on a connection that others use", ...stranger.leaks.slice(0, 3));
  for (const { lines } of hands) {
    const odd = lines.filter(({ message }) => poolerErrors.test(message));
    if (odd.length > 0) report("I19", "a worker was refused what a pooler cannot do", ...odd.slice(0, 3));
  }
  const ended = (await countEnded(pooled)) - before;
  landed("run ended behind the pooler", ended);
  landed("look at shared connections by a stranger", stranger.looks);
  figure(
    `${ended} runs ended, ${callers.refused} calls asked again, drained in ${drainMs} ms; a stranger looked ${stranger.looks} times, on ${stranger.backends.size} connections`,
  );
}

function countEnded({ ground }: PooledGround): Promise<number> {
  return ground.countRuns("status in ('completed', 'failed')");
}

const played = ["run ended behind the pooler", "look at shared connections by a stranger"];

/** Nobody hears a notification: polling finds everything, and workers say so. */
const silence: Scene = {
  name: "silence",
  faults: [...played, "worker found out that no notification comes"],
  act: (tools) =>
    withLoad(tools, {}, 2, async (pooled, hands) => {
      await pause(tools.isLong ? 30_000 : 4_000);
      const isTold = (hand: Hand): boolean => hand.lines.some(({ message }) => message.includes("listenUrl"));
      await pooled.ground.until("workers say it", () => Promise.resolve(hands.every(isTold)), 30_000);
      tools.landed("worker found out that no notification comes", hands.length);
    }),
};

/** One server connection for everybody: whoever held one while it asks for another would wait for itself. */
const poolOfOne: Scene = {
  name: "pool-of-one",
  faults: played,
  act: (tools) => withLoad(tools, { default_pool_size: "1" }, 2, () => pause(tools.isLong ? 30_000 : 4_000)),
};

/** An operator at the console: pauses, reloads, cut connections; and connections that end by themselves. */
const consoleCommands: Scene = {
  name: "console",
  faults: [...played, "PAUSE", "KILL", "RELOAD", "RECONNECT"],
  act: (tools) =>
    withLoad(tools, { server_lifetime: "1" }, 2, async (pooled) => {
      const { rng, landed, isLong } = tools;
      for (let round = 0; round < (isLong ? 50 : 2); round++) {
        for (const [harm, cure, ms] of [
          ["PAUSE", "RESUME", rng.between(200, 2_500)],
          ["RELOAD", null, 50],
          ["RECONNECT", null, 50],
          // Drops everybody, callers and connections, until it is resumed.
          ["KILL pooled", "RESUME pooled", rng.between(50, 1_500)],
        ] as const) {
          await pooled.command(harm);
          await pause(ms);
          if (cure !== null) await pooled.command(cure);
          landed(harm.split(" ")[0]!);
          await pause(rng.between(100, 500));
        }
      }
    }),
};

/** The pooler itself dies, and comes back; workers die as well, now and then. */
const restarts: Scene = {
  name: "restarts",
  faults: [...played, "pooler killed and started again", "worker behind the pooler killed"],
  act: (tools) =>
    withLoad(tools, {}, 3, async (pooled, hands) => {
      const { rng, landed, isLong } = tools;
      for (let round = 0; round < (isLong ? 50 : 4); round++) {
        await pooled.bouncer.restart();
        landed("pooler killed and started again");
        await pause(rng.between(50, 1_000));
        if (round !== 1) continue;
        await hands[0]!.kill();
        landed("worker behind the pooler killed");
      }
    }),
};

/** Somebody who leaves everything behind that can be left: the stranger must find all of it. */
const leaks: Scene = {
  name: "leaks",
  faults: leakable.map((what) => `stranger found ${what}`),
  async act({ landed }) {
    await using pooled = await PooledGround.open({ default_pool_size: "1" });
    await using stranger = new Stranger(pooled.bouncer.url);
    const careless = new pg.Client({ connectionString: pooled.bouncer.url });
    await careless.connect();
    for (const sql of [
      "set work_mem = '5MB'",
      "select pg_advisory_lock(1)",
      "prepare left_over as select 1",
      "listen left_over",
      "create temp table left_over ()",
    ])
      await careless.query(sql);
    const isFound = (what: string): boolean => stranger.leaks.some((leak) => leak.what === what);
    await pooled.ground.until("all is found", () => Promise.resolve(leakable.every(isFound)), 10_000);
    await careless.end();
    for (const what of leakable) landed(`stranger found ${what}`);
  },
};

const scenes = createSceneStage("pool", [leaks, silence, poolOfOne, consoleCommands, restarts]);

/** Everything behind PgBouncer, which shares connections by transaction. */
export const pool: Stage = {
  ...scenes,
  async run(task) {
    if (pgbouncer !== undefined) return scenes.run(task);
    const says = "There is no PgBouncer: apt-get install pgbouncer, or put it into /usr/local/bin.";
    return { landed: new Map(), figures: [], failures: [provesNothing(says)] };
  },
};
