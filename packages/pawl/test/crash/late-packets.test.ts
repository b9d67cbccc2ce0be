import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { WireProxy } from "../../../../verify/chaos/wire-proxy.ts";
import { eventually } from "./eventually.ts";
import { expectOrder } from "./invariants.ts";
import { countEnds, countIds, countRuns } from "./observe.ts";
import { outputsOf } from "./outputs-of.ts";
import { leaseMs, test } from "./scene.ts";
import { blocking, fan, startChains } from "./workflows.ts";

describe("while a worker is away", { timeout: 60_000 }, () => {
  test("its write that reaches the database late changes nothing", async ({ scene }) => {
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const [zombie, peer] = await Promise.all([
      scene.crew({}, { url: proxy.url }).hire(),
      scene.crew().next(),
    ]);
    // The first step's record is on its way until the others have ended too: theirs go out together, behind it.
    const recorded = proxy.inject({ kind: "hold", statement: "record_step" });
    const run = await scene.pawl.start(fan, { steps: 3, stepMs: 250 });
    const first = await recorded;
    await eventually(() => countEnds(scene, zombie)).toBe(3);
    const sent = proxy.inject({ kind: "delay", statement: "record_events" });
    first.letGo();
    const late = await sent;

    zombie.signal("SIGSTOP");
    await peer.work();
    await eventually(() => countRuns(scene, peer, [run])).toBe(1);
    late.letGo();
    expect(await outputsOf(scene, [run])).toEqual([[1, 2, 3]]);
    expect(await countEnds(scene, peer)).toBe(2);
    zombie.signal("SIGCONT");
    await eventually(() => countIds(scene, zombie)).toBeGreaterThan(1);
    await expectOrder(scene);
  });

  test("a late answer to its last write leads to no further step", async ({ scene }) => {
    const proxy = scene.own(await WireProxy.listen(scene.url));
    const [zombie, peer] = await Promise.all([
      scene.crew({}, { url: proxy.url }).hire(),
      scene.crew().next(),
    ]);
    const recorded = proxy.inject({ kind: "hold", statement: "record_step" });
    const runs = await startChains(scene.pawl, 1, { steps: 4, stepMs: 5 });
    const record = await recorded;

    zombie.signal("SIGSTOP");
    record.letGo();
    await peer.work();
    expect(await outputsOf(scene, runs)).toEqual([[1, 2, 3, 4]]);
    zombie.signal("SIGCONT");
    await eventually(() => countIds(scene, zombie)).toBeGreaterThan(1);
    await expectOrder(scene);
  });

  // A loop that was blocked takes what has come in before it looks at its timers, the end of its lease among them.
  for (const [what, statement] of Object.entries({ record: "record_step", claim: "claim_runs" })) {
    test(`the answer to its last ${what} leads to no step either when it is read first`, async ({
      scene,
    }) => {
      const proxy = scene.own(await WireProxy.listen(scene.url));
      const zombies = scene.crew({}, { url: proxy.url, ledgerUrl: proxy.url });
      const [zombie, peer] = await Promise.all([zombies.hire(), scene.crew().next()]);
      const begun = proxy.inject({ kind: "hold", statement: "ledger_begin" });
      const blocker = await scene.pawl.start(blocking, { blockMs: 3 * leaseMs });
      const begin = await begun;
      const answered = proxy.inject({
        kind: "hold",
        statement,
        // A claim names the runs that were claimed; the record of a step answers nothing where the run was not held.
        isWorth: (rows) => rows.some((value) => value !== null),
      });
      const runs = await startChains(scene.pawl, 1, { steps: 4, stepMs: 5 });
      const answer = await answered;

      // Both answers are there when it next looks: the one after which it blocks, and behind it the other.
      zombie.signal("SIGSTOP");
      begin.letGo();
      await pause(10);
      answer.letGo();
      await pause(10);
      zombie.signal("SIGCONT");
      await peer.work();
      expect(await outputsOf(scene, runs)).toEqual([[1, 2, 3, 4]]);
      expect(await outputsOf(scene, [blocker])).toEqual(["computed"]);
      await eventually(() => countIds(scene, zombie)).toBeGreaterThan(1);
      await expectOrder(scene);
    });
  }
});
