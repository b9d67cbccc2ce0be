import { compound } from "./chaos/compound.ts";
import { database } from "./database/stage.ts";
import { differential } from "./diff/differential.ts";
import { input } from "./input/input.ts";
import { points, somePoints } from "./points/points.ts";
import { pool } from "./pool/stage.ts";
import { rare } from "./rare/stage.ts";
import { simulation } from "./sim/simulation.ts";
import { space } from "./space/stage.ts";
import type { Stage } from "./stage.ts";
import { upgrade } from "./upgrade/stage.ts";

interface ShareOfTime {
  readonly stage: Stage;
  /** Of all the time there is. */
  readonly share: number;
}

const stages = [
  compound,
  database,
  differential,
  input,
  points,
  pool,
  rare,
  simulation,
  somePoints,
  space,
  upgrade,
] as const;

/** What `--profile` may say, and what is run then, one after the other. A stage alone is known by its name. */
export const profiles: ReadonlyMap<string, readonly ShareOfTime[]> = new Map<string, readonly ShareOfTime[]>([
  [
    "quick",
    [
      { stage: simulation, share: 0.36 },
      { stage: somePoints, share: 0.04 },
      { stage: differential, share: 0.08 },
      { stage: database, share: 0.08 },
      { stage: input, share: 0.04 },
      { stage: compound, share: 0.4 },
    ],
  ],
  [
    "full",
    [
      { stage: database, share: 0.01 },
      { stage: points, share: 0.05 },
      { stage: differential, share: 0.04 },
      { stage: input, share: 0.05 },
      { stage: simulation, share: 0.3 },
      { stage: compound, share: 0.31 },
      { stage: pool, share: 0.06 },
      { stage: rare, share: 0.04 },
      { stage: upgrade, share: 0.06 },
      { stage: space, share: 0.08 },
    ],
  ],
  ...stages.map((stage) => [stage.name, [{ stage, share: 1 }]] as const),
]);
