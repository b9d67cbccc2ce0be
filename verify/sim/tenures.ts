import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { ClaimedRun } from "../../packages/pawl/src/store/lease.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";

/** Under which epochs one process executes code: from the claim that began it, on through claims with which it went on. */
export interface Tenures {
  /** The same store; the epoch of each claim is written into the program of its run. */
  watch(store: Store): Store;
  /** The epoch under which code that began under this one is executed now. */
  readonly epochOf: (run: RunId, began: number) => number;
}

interface Tenure {
  readonly began: number;
  epoch: number;
  /** Its code goes on only if the next claim is this process's, too. */
  isParked: boolean;
}

export function createTenures(): Tenures {
  const tenures = new Map<RunId, Tenure[]>();
  const of = (run: RunId): readonly Tenure[] => tenures.get(run) ?? [];

  const claimed = (run: ClaimedRun): ClaimedRun => {
    const { runId, epoch, input } = run;
    for (const tenure of of(runId)) {
      if (!tenure.isParked || tenure.epoch !== epoch - 1) continue;
      tenure.epoch = epoch;
      tenure.isParked = false;
    }
    tenures.set(runId, [...of(runId), { began: epoch, epoch, isParked: false }]);
    if (input === null) return run;
    return { ...run, input: { ...input, json: input.json.replace("{", `{"epoch":${epoch},`) } };
  };

  return {
    epochOf: (run, began) => of(run).find((tenure) => tenure.began === began)?.epoch ?? began,
    watch: (store) => ({
      ...store,
      async claimRuns(request) {
        const claim = await store.claimRuns(request);
        return { ...claim, runs: claim.runs.map(claimed) };
      },
      async wakeDue(limit, holder) {
        const answer = await store.wakeDue(limit, holder);
        return { ...answer, held: answer.held.map(claimed) };
      },
      async createHeld(run, holder) {
        const answer = await store.createHeld(run, holder);
        return answer.held === null ? answer : { ...answer, held: claimed(answer.held) };
      },
      async park(parking) {
        const answer = await store.park(parking);
        const { runId, epoch } = parking.lease;
        if (answer.outcome === "parked")
          for (const tenure of of(runId)) if (tenure.epoch === epoch) tenure.isParked = true;
        return answer;
      },
    }),
  };
}
