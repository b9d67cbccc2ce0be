import { describePairs } from "./pair-test.ts";
import { batches, crashedAlone, deadTogether, deadWorker, heldRun, heldTogether } from "./scenarios.ts";

describePairs("held runs", [heldRun, heldTogether, batches, deadWorker, deadTogether, crashedAlone]);
