import { createSceneStage } from "../scenes/scene.ts";
import { backlog, sameSecond } from "./backlog.ts";
import { diskFull } from "./disk-full.ts";
import { heldSnapshot } from "./held-snapshot.ts";
import { idlePolling } from "./idle.ts";
import { outOfMemory, poisonRuns } from "./poison.ts";

/** Space, load, and what lies in the way. */
export const space = createSceneStage("space", [
  heldSnapshot,
  backlog,
  sameSecond,
  idlePolling,
  poisonRuns,
  outOfMemory,
  diskFull,
]);
