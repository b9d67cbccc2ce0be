import { createSceneStage } from "../scenes/scene.ts";
import { behindLongTransaction, crowdOfMigrators } from "./crowd.ts";
import { cutAtMessages, cutAtStatements } from "./cut-migrations.ts";
import { patchedDeploy, unpatchedDeploy } from "./deploy.ts";
import { newWorkerOldSchema, oldWorkerNewSchema } from "./handshake.ts";
import { storedHistories } from "./stored-histories.ts";

/** Schemas and code that change under live runs. */
export const upgrade = createSceneStage("upgrade", [
  cutAtStatements,
  cutAtMessages,
  crowdOfMigrators,
  behindLongTransaction,
  newWorkerOldSchema,
  oldWorkerNewSchema,
  patchedDeploy,
  unpatchedDeploy,
  storedHistories,
]);
