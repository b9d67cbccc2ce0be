import { describePairs } from "./pair-test.ts";
import { expiredRun, pausedRun, quietRun, readyRun, starts, waitingRun } from "./scenarios.ts";

describePairs("runs that wait", [readyRun, expiredRun, waitingRun, quietRun, pausedRun, starts]);
