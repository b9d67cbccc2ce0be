import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";

/** Workers that die as soon as they are up, again and again, beside one that lives: it ends everything, and nothing stays held. */
export const bootLoop: Scene = {
  name: "boot-loop",
  faults: ["worker died as soon as it was up"],
  async act({ rng, isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    await ground.hire();
    const load = new Load(ground.pawl, 10);
    for (let n = 0; n < (isLong ? 50 : 4); n++) {
      const hand = await ground.hire();
      await pause(rng.between(0, 60));
      await hand.kill();
      landed("worker died as soon as it was up");
    }
    const dead = await ground.value(`select count(*)::int from pawl.event where kind = 'attempt_crashed'`);
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    const held = await ground.value("select count(*)::int from pawl.live_runs where worker_id is not null");
    if (held > 0) report("I18", `${held} leases are left`);
    figure(`${load.started.length} runs, ${dead} of them crashed with a worker, drained in ${drainMs} ms`);
  },
};
