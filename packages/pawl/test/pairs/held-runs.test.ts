import { describePairs } from "./pair-test.ts";
import { batches, crashedAlone, deadWorker, heldRun } from "./scenarios.ts";

describePairs("held runs", [heldRun, batches, deadWorker, crashedAlone]);
