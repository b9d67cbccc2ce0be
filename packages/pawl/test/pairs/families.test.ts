import { describePairs } from "./pair-test.ts";
import { delayedChild, failedFamily, heldFamily, waitingParent } from "./scenarios.ts";

describePairs("parents and children", [delayedChild, waitingParent, heldFamily, failedFamily]);
