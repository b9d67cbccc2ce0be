import { LeaseLostError } from "../core/error.ts";
import type { Lease } from "../store/lease.ts";
import type { LeaseRoom, Run, State } from "./state.ts";

/** How it names itself: it is the only one. */
export const server = 1;

/**
 * The run and its lease row, if it is held under exactly this lease, and its history reaches to what a holder from elsewhere knows of.
 * Looked at before anything is changed.
 */
export function heldRun(
  state: State,
  lease: Lease,
  known = 0,
): { readonly run: Run; readonly room: LeaseRoom } {
  const run = state.runs.get(lease.runId);
  const room = run?.room;
  if (
    !run ||
    room?.kind !== "lease" ||
    room.epoch !== lease.epoch ||
    room.workerId !== lease.workerId ||
    (lease.server !== server && run.newestSeq < known)
  ) {
    throw new LeaseLostError(lease.runId, lease.epoch);
  }
  return { run, room };
}
