import type { RunId } from "../core/ids.ts";
import type { RunEnd } from "./run-record.ts";

/** Those in this process who wait for runs to end. Whoever ends one here tells them, and they need not ask the store. */
export interface Audience {
  /** Tells those who wait for it now, and nobody who comes later: the run may have another life by then. Null: nobody waits. */
  waitingFor(runId: RunId): ((end: RunEnd) => void) | null;
}
