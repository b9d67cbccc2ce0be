import { describePairs } from "./pair-test.ts";
import { expiredRun, packedRuns, pausedRun, quietRun, readyRun, starts, waitingRun } from "./scenarios.ts";

describePairs("runs that wait", [readyRun, packedRuns, expiredRun, waitingRun, quietRun, pausedRun, starts]);
