import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { Fleet } from "./fleet.ts";
import { convoy, convoyNodes, convoyOutput, parcel, parcelWay } from "./front-ends.ts";
import { expectOrder } from "./invariants.ts";
import { outputsOf } from "./outputs-of.ts";
import { test } from "./scene.ts";

const eachWave = 8;
const leastKills = 5;

describe("graphs and machines while workers are killed", { timeout: 120_000 }, () => {
  test("come to their ends, and a graph starts every node once", async ({ scene }) => {
    const fleet = new Fleet(scene);
    await fleet.start();
    let kills = 0;
    let waves = 0;
    for (; kills < leastKills; waves++) {
      const inputs = Array.from({ length: eachWave }, () => ({ stepMs: 60 }));
      const convoys = await Promise.all(inputs.map((input) => scene.pawl.start(convoy, input)));
      const parcels = await Promise.all(inputs.map((input) => scene.pawl.start(parcel, input)));
      const ended = Promise.all([outputsOf(scene, convoys, 60_000), outputsOf(scene, parcels, 60_000)]);
      const isOver = ended.then(() => "over" as const);
      while ((await Promise.race([isOver, pause(100 + scene.random.next() * 300)])) !== "over")
        if ((await fleet.kill()) !== null) kills += 1;
      const [carried, delivered] = await ended;
      expect(carried).toEqual(inputs.map(() => convoyOutput));
      expect(delivered).toEqual(inputs.map(() => parcelWay));
      for (const run of convoys) {
        const nodes = await run.nodes();
        expect(nodes.map(({ name, state }) => [name, state])).toEqual(
          convoyNodes.map((name) => [name, "completed"]),
        );
        const started = (await run.history()).filter(({ kind }) => kind === "child_started");
        expect(started).toHaveLength(convoyNodes.length);
      }
    }
    await fleet.isComplete();
    await expectOrder(scene);
    console.info(
      `front ends: seed ${scene.seed}, ${kills} effective kills, ${waves * eachWave} graphs and as many machines`,
    );
  });
});
