import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { eventually } from "./eventually.ts";
import { expectOrder } from "./invariants.ts";
import { countIds, countLateEnds, countRuns } from "./observe.ts";
import { outputsOf } from "./outputs-of.ts";
import { leaseMs, test } from "./scene.ts";
import { blocking, startChains } from "./workflows.ts";

describe("a worker that is away for longer than its lease", { timeout: 60_000 }, () => {
  test("finds its runs taken over, and works on under a new id", async ({ scene }) => {
    const crew = scene.crew();
    const [zombie] = await Promise.all([crew.hire(), crew.hire(), crew.hire()]);
    const runs = await startChains(scene.pawl, 24, { steps: 4, stepMs: 300 });
    await eventually(() => countRuns(scene, zombie, runs)).toBeGreaterThan(2);

    zombie.signal("SIGSTOP");
    const stoppedAt = performance.now();
    const results = await outputsOf(scene, runs);
    const doneMs = performance.now() - stoppedAt;
    await pause(Math.max(0, 3 * leaseMs - doneMs));
    zombie.signal("SIGCONT");
    expect(results).toEqual(runs.map(() => [1, 2, 3, 4]));

    // Its steps end now, and nobody wants to know.
    await eventually(() => countLateEnds(scene, zombie)).toBeGreaterThan(0);
    await eventually(() => countIds(scene, zombie)).toBeGreaterThan(1);
    const later = await startChains(scene.pawl, 24, { steps: 4, stepMs: 50 });
    await outputsOf(scene, later);
    expect(await countRuns(scene, zombie, later)).toBeGreaterThan(0);
    await expectOrder(scene);
    expect(zombie.heardOf("lease has expired")).not.toEqual([]);
    console.info(
      `SIGSTOP: ${runs.length} runs done after ${Math.round(doneMs)} ms,`,
      `${await countLateEnds(scene, zombie)} steps ended in vain`,
    );
  });

  test("is told so when a step blocks its event loop", async ({ scene }) => {
    const crew = scene.crew();
    const [busy, ...peers] = await Promise.all([crew.hire(), crew.next(), crew.next()]);
    const run = await scene.pawl.start(blocking, { blockMs: 3 * leaseMs });
    const neighbours = await startChains(scene.pawl, 5, { steps: 4, stepMs: 100 });
    await eventually(() => countRuns(scene, busy, [run])).toBe(1);
    await Promise.all(peers.map((peer) => peer.work()));

    expect(await outputsOf(scene, [run])).toEqual(["computed"]);
    await outputsOf(scene, neighbours);
    await eventually(() => countLateEnds(scene, busy)).toBeGreaterThan(0);
    await eventually(() => countIds(scene, busy)).toBeGreaterThan(1);
    const later = await startChains(scene.pawl, 24, { steps: 4, stepMs: 50 });
    await outputsOf(scene, later);
    expect(await countRuns(scene, busy, later)).toBeGreaterThan(0);
    await expectOrder(scene);
    const [warning] = busy.heardOf("event loop was blocked");
    expect(warning?.fields["steps"]).toContainEqual({ runId: run.id, step: "compute" });
    expect(busy.heardOf("lease has expired")).not.toEqual([]);
  });
});
