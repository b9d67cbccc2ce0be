import type { ParkAnswer, Parking } from "../store/lease.ts";
import type { Store } from "../store/store.ts";

/** The same store, and a word about every run that parks until an instant: in how many ms that comes. */
export function observeParks(store: Store, parked: (dueInMs: number) => void): Store {
  return {
    ...store,
    async park(parking) {
      const answer = await store.park(parking);
      const dueAt = answer.outcome === "parked" ? earliestDueAt(parking, answer) : Number.POSITIVE_INFINITY;
      if (dueAt !== Number.POSITIVE_INFINITY) parked(dueAt - answer.now);
      return answer;
    },
  };
}

function earliestDueAt({ dueAt, delayMs }: Parking, answer: ParkAnswer): number {
  const atDelay = delayMs === null ? Number.POSITIVE_INFINITY : answer.now + delayMs;
  return Math.min(dueAt ?? Number.POSITIVE_INFINITY, atDelay, ...answer.dueAt.values());
}
