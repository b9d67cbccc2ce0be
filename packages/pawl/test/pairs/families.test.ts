import { describePairs } from "./pair-test.ts";
import { delayedChild, heldFamily, waitingParent } from "./scenarios.ts";

describePairs("parents and children", [delayedChild, waitingParent, heldFamily]);
