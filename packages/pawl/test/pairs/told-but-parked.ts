import type { StoreSnapshot } from "../../src/store/snapshot.ts";

/** Runs that wait although a message they wait for is there. */
export function toldButParked({ parked, inbox }: StoreSnapshot): readonly string[] {
  return parked.flatMap(({ runId, wants }) => {
    const isTold = inbox.some(
      (message) => message.runId === runId && message.takenSeq === null && wants.includes(message.topic),
    );
    return isTold ? [runId] : [];
  });
}
