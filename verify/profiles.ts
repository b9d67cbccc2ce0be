import { differential } from "./diff/differential.ts";
import { points, somePoints } from "./points/points.ts";
import { simulation } from "./sim/simulation.ts";
import type { Stage } from "./stage.ts";

interface ShareOfTime {
  readonly stage: Stage;
  /** Of all the time there is. */
  readonly share: number;
}

function alone(stage: Stage): readonly ShareOfTime[] {
  return [{ stage, share: 1 }];
}

/** What `--profile` may say, and what is run then, one after the other. A stage alone is known by its name. */
export const profiles: ReadonlyMap<string, readonly ShareOfTime[]> = new Map([
  [
    "quick",
    [
      { stage: simulation, share: 0.4 },
      { stage: somePoints, share: 0.05 },
      { stage: differential, share: 0.1 },
    ],
  ],
  ...[simulation, somePoints, points, differential].map((stage) => [stage.name, alone(stage)] as const),
]);
