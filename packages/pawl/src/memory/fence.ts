import { LeaseLostError } from "../core/error.ts";
import type { Lease } from "../store/lease.ts";
import type { LeaseRoom, Run, State } from "./state.ts";

/** The run and its lease row, if it is held under exactly this lease. Looked at before anything is changed. */
export function heldRun(state: State, lease: Lease): { readonly run: Run; readonly room: LeaseRoom } {
  const run = state.runs.get(lease.runId);
  const room = run?.room;
  if (!run || room?.kind !== "lease" || room.epoch !== lease.epoch || room.workerId !== lease.workerId) {
    throw new LeaseLostError(lease.runId, lease.epoch);
  }
  return { run, room };
}
