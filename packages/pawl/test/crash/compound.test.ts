import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { Fleet } from "./fleet.ts";
import { expectOrder } from "./invariants.ts";
import { startOrder, type StartedOrder } from "./orders.ts";
import { outputsOf } from "./outputs-of.ts";
import { leaseMs, test } from "./scene.ts";
import { WireProxy } from "./wire-proxy.ts";
import { expectedOutput } from "./workflows.ts";

/** How long the faults last; `PAWL_CRASH_SECONDS` makes it more. */
const seconds = Number(process.env["PAWL_CRASH_SECONDS"] ?? 5);
/** What is left to do after the last fault, on a busy machine. */
const workSeconds = 20 + seconds / 2;

const statements =
  "create_runs claim_runs record_events park_runs end_runs tell_runs read_inbox heartbeat sweep wake_due".split(
    " ",
  );

describe("faults of all kinds", { timeout: (seconds + workSeconds) * 1_000 + 30_000 }, () => {
  test("at once lose, double and stop nothing", async ({ scene }) => {
    const { random } = scene;
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const pawl = scene.connect(proxy.url);
    const fleet = new Fleet(scene, { url: proxy.url });
    await fleet.start();

    const faults: readonly (readonly [name: string, share: number, strike: () => unknown])[] = [
      ["killed", 0.25, () => fleet.kill()],
      ["stopped", 0.15, () => fleet.freeze(random.next() * 3 * leaseMs)],
      ["all cut", 0.05, () => proxy.cutAll()],
      ["cut", 0.15, () => void proxy.inject({ kind: "cut", statement: anyStatement() })],
      ["lost", 0.4, () => void proxy.inject({ kind: "lose", statement: anyStatement() })],
    ];
    const anyStatement = (): string => statements[Math.floor(random.next() * statements.length)]!;
    const starting: Promise<StartedOrder>[] = [];
    const counts: Record<string, number> = {};
    for (const until = performance.now() + seconds * 1_000; performance.now() < until;) {
      for (let n = 0; n < 6; n++) starting.push(startOrder(scene, pawl, starting.length));
      await pause(100 + random.next() * 400);
      let place = random.next();
      const [name, , strike] = faults.find(([, share]) => (place -= share) < 0) ?? faults[0]!;
      counts[name] = (counts[name] ?? 0) + 1;
      await strike();
    }

    await fleet.isComplete();
    const started = await Promise.all(starting);
    const runs = started.map(({ run }) => run);
    const outputs = await outputsOf(scene, runs, workSeconds * 1_000);
    expect(outputs).toEqual(started.map(({ n }) => expectedOutput(n)));
    await expectOrder(scene);
    console.info(`compound faults: seed ${scene.seed}, ${JSON.stringify(counts)}, ${runs.length} runs`);
  });
});
