import { describe } from "vitest";
import { describeClaiming } from "./claiming.ts";
import { describeContinuing } from "./continuing.ts";
import { describeControl } from "./control.ts";
import { describeCreatingHeld } from "./creating-held.ts";
import { describeCreating } from "./creating.ts";
import { describeEnding } from "./ending.ts";
import { describeFencing } from "./fencing.ts";
import { describeForking } from "./forking.ts";
import type { CreateHarness } from "./harness.ts";
import { describeHolding } from "./holding.ts";
import { describeListening } from "./listening.ts";
import { describeOperating } from "./operating.ts";
import { describeParking } from "./parking.ts";
import { describeReading } from "./reading.ts";
import { describeRepeating } from "./repeating.ts";
import { describeResting } from "./resting.ts";
import { describeShowing } from "./showing.ts";
import { describeSignalOrStart } from "./signal-or-start.ts";
import { describeStartingTogether } from "./starting-together.ts";
import { createStoreTest } from "./store-test.ts";
import { describeSweeping } from "./sweeping.ts";
import { describeTelling } from "./telling.ts";
import { describeWakingDue } from "./waking-due.ts";
import { describeWorkers } from "./workers.ts";

/** All that a store promises (docs/store.md), as tests. */
export function describeStore(name: string, createHarness: CreateHarness): void {
  const test = createStoreTest(createHarness);
  describe(`what a store promises: ${name}`, () => {
    describeCreating(test);
    describeStartingTogether(test);
    describeClaiming(test);
    describeCreatingHeld(test);
    describeHolding(test);
    describeParking(test);
    describeEnding(test);
    describeContinuing(test);
    describeFencing(test);
    describeRepeating(test);
    describeTelling(test);
    describeSignalOrStart(test);
    describeControl(test);
    describeOperating(test);
    describeForking(test);
    describeWakingDue(test);
    describeWorkers(test);
    describeResting(test);
    describeSweeping(test);
    describeReading(test);
    describeShowing(test);
    describeListening(test);
  });
}
