import { createSceneStage } from "../scenes/scene.ts";
import { backlog, sameSecond } from "./backlog.ts";
import { diskFull } from "./disk-full.ts";
import { heldSnapshot } from "./held-snapshot.ts";
import { idlePolling } from "./idle.ts";
import { maintenance } from "./maintenance.ts";
import { outOfMemory, poisonRuns } from "./poison.ts";
import { olderPoint } from "./restore.ts";

/** Space, load, and what lies in the way. */
export const space = createSceneStage("space", [
  heldSnapshot,
  backlog,
  sameSecond,
  idlePolling,
  poisonRuns,
  outOfMemory,
  maintenance,
  diskFull,
  olderPoint,
]);
