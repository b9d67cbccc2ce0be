import { input } from "./input/input.ts";
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
      { stage: simulation, share: 0.93 },
      { stage: input, share: 0.07 },
    ],
  ],
  ...[simulation, input].map((stage) => [stage.name, alone(stage)] as const),
]);
