import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import { checkHistories, indexSnapshot } from "../hist/check-facts.ts";
import { checkRooms } from "../hist/check-rooms.ts";
import { Verdict, type Violation } from "../hist/verdict.ts";

/** What holds in every store at every moment, whatever has happened: rooms are right, and histories whole. */
export function checkSoundness(snapshot: StoreSnapshot): readonly Violation[] {
  const verdict = new Verdict();
  const final = indexSnapshot(snapshot);
  checkRooms(final, verdict.report);
  // How a life ends is for holders to say, and random ones say anything.
  checkHistories(final, (invariant, ...rest) => {
    if (invariant !== "I7") verdict.report(invariant, ...rest);
  });
  const ids = new Set<string>();
  for (const message of snapshot.inbox) {
    const id = `${message.runId} ${message.id}`;
    if (ids.has(id)) verdict.report("I10", "a message is there twice", message);
    ids.add(id);
  }
  return verdict.violations;
}
