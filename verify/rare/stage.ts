import { createSceneStage } from "../scenes/scene.ts";
import { allWorkersAtOnce, serverAway } from "./all-at-once.ts";
import { bootLoop } from "./boot-loop.ts";
import { cancelledWaits } from "./cancelled-waits.ts";
import { maintenance } from "./maintenance.ts";
import { olderPoint } from "./older-point.ts";
import { roleTimeouts } from "./role-timeouts.ts";
import { tornAnswers } from "./torn-answers.ts";

/** Single faults that seldom come, and that the others do not bring about. */
export const rare = createSceneStage("rare", [
  roleTimeouts,
  tornAnswers,
  cancelledWaits,
  allWorkersAtOnce,
  bootLoop,
  serverAway,
  maintenance,
  olderPoint,
]);
