import { compound } from "./chaos/compound.ts";
import { database } from "./database/stage.ts";
import { differential } from "./diff/differential.ts";
import { input } from "./input/input.ts";
import { pool } from "./pool/stage.ts";
import { simulation } from "./sim/simulation.ts";
import { space } from "./space/stage.ts";
import type { Stage } from "./stage.ts";
import { upgrade } from "./upgrade/stage.ts";

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
      { stage: simulation, share: 0.38 },
      { stage: differential, share: 0.08 },
      { stage: database, share: 0.08 },
      { stage: input, share: 0.06 },
      { stage: compound, share: 0.4 },
    ],
  ],
  ...[compound, database, differential, input, pool, simulation, space, upgrade].map(
    (stage) => [stage.name, alone(stage)] as const,
  ),
]);
