import { setTimeout as pause } from "node:timers/promises";
import { PrivateServer } from "pawl-test-support/private-server";
import { describe, expect } from "vitest";
import { pgbouncer, startPgBouncer } from "../postgres/pgbouncer.ts";
import { EverythingTraffic } from "./everything-client.ts";
import { Fleet } from "./fleet.ts";
import { expectOrder } from "./invariants.ts";
import { leaseMs, type Scene, test as sceneTest } from "./scene.ts";
import { Traffic } from "./traffic.ts";
import { WireProxy } from "./wire-proxy.ts";

/** How long the faults last; `PAWL_CRASH_SECONDS` makes it more. */
const seconds = Number(process.env["PAWL_CRASH_SECONDS"] ?? 8);
/** What was started shortly before the last fault takes a busy machine about this long. */
const workMs = 5_000;
/** The server is ended no more often than this: one that ends soon after its start is given up by its supervisor. */
const restartEveryMs = 7_000;

const inFlight = 40;
const everythingInFlight = 2;
/** A chain of everything is three times as long as all that an order does, and more often a suspect. */
const everythingMs = 60_000;

const statements =
  "create_runs claim_runs record_events park_runs end_runs tell_runs read_inbox heartbeat sweep wake_due".split(
    " ",
  );

const test = sceneTest
  .extend("server", { scope: "file" }, async ({}, { onCleanup }) => {
    const server = await PrivateServer.start();
    onCleanup(() => server[Symbol.asyncDispose]());
    return server;
  })
  .override("database", { scope: "file" }, async ({ server }) => {
    const name = "compound";
    return { name, url: await server.createDatabase(name) };
  });

describe("faults of all kinds", { timeout: seconds * 1_000 + 2 * leaseMs + 60_000 + everythingMs }, () => {
  test("at once lose, double and stop nothing", async ({ scene, server }) => {
    const { random } = scene;
    const proxies = [scene.own(await WireProxy.listen(scene.url))];
    if (pgbouncer !== undefined) {
      const bouncer = await startPgBouncer(scene.url);
      scene.own({ [Symbol.asyncDispose]: () => bouncer.stop() });
      proxies.push(scene.own(await WireProxy.listen(bouncer.url)));
    }
    const pawl = scene.connect(proxies[0]!.url);
    const fleet = new Fleet(scene, proxies);
    await fleet.start();

    const hits: Record<string, number> = {};
    const hit = (name: string, isHit: boolean): void => {
      hits[name] = (hits[name] ?? 0) + (isHit ? 1 : 0);
    };
    const any = <Thing>(things: readonly Thing[]): Thing =>
      things[Math.floor(random.next() * things.length)]!;
    const interfere = (kind: "cut" | "lose"): void => {
      void any(proxies)
        .inject({ kind, statement: any(statements) })
        .then(() => hit(kind === "cut" ? "cut before COMMIT" : "cut after COMMIT", true));
    };
    let restartedAt = performance.now() - restartEveryMs / 2;
    const restartInTakeover = async (): Promise<void> => {
      const kill = await fleet.kill();
      await pause(leaseMs * (0.6 + random.next() * 0.8));
      await server.restart();
      restartedAt = performance.now();
      hit("restart in take-over", kill !== null);
    };
    const faults: readonly (readonly [share: number, strike: () => unknown])[] = [
      [0.25, async () => hit("kill -9", (await fleet.kill()) !== null)],
      [0.15, async () => hit("SIGSTOP", await fleet.freeze(leaseMs * (1.1 + random.next() * 2)))],
      [0.15, async () => hit("terminate", (await terminateSome(scene)) > 0)],
      [0.05, () => any(proxies).cutAll()],
      [0.15, () => interfere("cut")],
      [0.25, () => interfere("lose")],
    ];

    const traffic = new Traffic(scene, pawl, inFlight, true);
    const everything = new EverythingTraffic(pawl, everythingInFlight);
    const until = performance.now() + seconds * 1_000;
    while (performance.now() < until || (hits["restart in take-over"] ?? 0) === 0) {
      await pause(100 + random.next() * 400);
      let place = random.next();
      const [, strike] = faults.find(([share]) => (place -= share) < 0) ?? faults[0]!;
      await (performance.now() > restartedAt + restartEveryMs ? restartInTakeover() : strike());
    }

    const lastFaultAt = performance.now();
    for (const proxy of proxies) proxy.disarm();
    const withinMs = 2 * leaseMs + 10_000 + workMs;
    await traffic.end(withinMs);
    const drainedMs = performance.now() - lastFaultAt;
    await everything.end(scene, everythingMs);
    await fleet.isComplete();
    await expectOrder(scene);
    console.info(
      `compound faults: seed ${scene.seed}, ${proxies.length === 1 ? "no " : ""}PgBouncer, effective ${JSON.stringify(hits)},`,
      `${traffic.started} orders and ${everything.started} chains of everything, orders done ${Math.round(drainedMs)} ms after the last fault`,
    );
    expect(drainedMs).toBeLessThan(withinMs);
  });
});

/** Ends some of Pawl's connections at the server. Answers how many there were. */
async function terminateSome({ pool, random }: Scene): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and application_name = 'pawl'",
  );
  const pids = rows.map(({ pid }) => pid).filter(() => random.next() < 0.3);
  const { rowCount } = await pool.query(
    "select 1 from unnest($1::int[]) pid where pg_terminate_backend(pid)",
    [pids],
  );
  return rowCount!;
}
