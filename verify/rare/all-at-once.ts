import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import type { Hand } from "../scenes/hand.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";
import { createTemporaryFolder } from "../scenes/temporary-folder.ts";

function hireThree(ground: Ground): Promise<readonly Hand[]> {
  return Promise.all(Array.from({ length: 3 }, () => ground.hire()));
}

/** Nobody is left, for a while: the next ones find everything that the last ones held. */
export const allWorkersAtOnce: Scene = {
  name: "all-workers-at-once",
  faults: ["all workers killed at once", "run in the hands of a dead worker"],
  async act({ rng, isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    const load = new Load(ground.pawl, 10, 100);
    for (let round = 0; round < (isLong ? 50 : 2); round++) {
      const hands = await hireThree(ground);
      await pause(rng.between(500, 1_500));
      await Promise.all(hands.map((hand) => hand.kill()));
      landed("all workers killed at once");
      landed(
        "run in the hands of a dead worker",
        await ground.value("select count(*)::int from pawl.live_runs where worker_id is not null"),
      );
    }
    await hireThree(ground);
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    figure(`${load.started.length} runs, drained in ${drainMs} ms`);
  },
};

/** The server is away for long. Workers and callers wait without growing, and are back soon after it is. */
export const serverAway: Scene = {
  name: "server-away",
  faults: ["second without a server"],
  async act({ isLong, landed, figure, report }) {
    await using folder = await createTemporaryFolder();
    await using ground = await Ground.open({}, join(folder.path, "server"));
    const hands = await Promise.all([ground.hire(), ground.hire()]);
    const load = new Load(ground.pawl, 10);
    await pause(1_000);
    const before = await Promise.all(hands.map((hand) => hand.residentMegabytes()));
    const awaySeconds = isLong ? 600 : 12;
    await ground.server.whileDown(() => pause(awaySeconds * 1_000));
    landed("second without a server", awaySeconds);
    const backAt = performance.now();
    const ended = await ground.countRuns("status = 'completed'");
    await ground.until(
      "runs end again",
      async () => (await ground.countRuns("status = 'completed'")) > ended,
      30_000,
    );
    const backMs = Math.round(performance.now() - backAt);
    const after = await Promise.all(hands.map((hand) => hand.residentMegabytes()));
    await load.end();
    const drainMs = await ground.drain();
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    figure(
      `away for ${awaySeconds} s, back at work after ${backMs} ms, drained in ${drainMs} ms; workers had ${before.join(" and ")} MB before and ${after.join(" and ")} after`,
    );
    if (after.some((megabytes, index) => megabytes > before[index]! + 100))
      report("I19", "a worker grew while the server was away", { before, after });
    if (hands.some(({ isAlive }) => !isAlive)) report("I19", "a worker did not outlive the server's absence");
  },
};
