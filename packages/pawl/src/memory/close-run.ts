import { cancelFromParentId } from "../core/child-end.ts";
import type { RunId } from "../core/ids.ts";
import type { EndStatus } from "../core/run-status.ts";
import type { RunEnd } from "../store/run-record.ts";
import { replaceMessage } from "./inbox.ts";
import { leaveRooms } from "./rooms.ts";
import { runOf, type Run, type State } from "./state.ts";

/**
 * Ends a run: tells its live parent, and asks its live children to stop. Answers those it told, whom the caller wakes:
 * `wake` ends runs itself, so it cannot be called from here.
 */
export function closeRun(state: State, run: Run, end: RunEnd): readonly Run[] {
  return [...leaveForGood(state, run, end), ...stopChildren(state, run)];
}

/** Ends a run and tells its live parent, which is answered. */
export function leaveForGood(state: State, run: Run, end: RunEnd): readonly Run[] {
  leaveRooms(state, run, end);
  const parent = run.parentId === null ? undefined : state.runs.get(run.parentId);
  // A run that goes on as another has nothing to tell.
  if (run.continuedAs !== null) return [];
  return parent?.room && tellParent(state, parent, run, end) ? [parent] : [];
}

/** Asks the live children of a run that was stopped or has failed to stop, and answers them; detached ones go on. */
export function stopChildren(state: State, { id: parentId, end, childIds }: Run): readonly Run[] {
  if (end === null || !stopsChildren.includes(end.status)) return [];
  const told: Run[] = [];
  for (const childId of childIds) {
    const child = runOf(state, childId);
    if (!child.room || child.isDetached) continue;
    const id = cancelFromParentId(childId, parentId);
    const data = { json: `{"reason":"parent"}`, notes: null };
    // One of an earlier life may be there.
    replaceMessage(state, child, { id, topic: "cancel", name: null, data, idempotencyKey: null });
    told.push(child);
  }
  return told;
}

const stopsChildren: readonly EndStatus[] = ["cancelled", "timed_out", "failed"];

/** Leaves word of how a child ended, unless an earlier end of it has been heard of: then answers false. */
export function tellParent(state: State, parent: Run, child: Run, end: RunEnd): boolean {
  const { id, firstId, parentRequest: name } = child;
  if (hasHeardOf(parent, id)) return false;
  const data = { json: childEndedJson(id, firstId, end), notes: childEndedNotes(end) };
  replaceMessage(state, parent, { id, topic: "child", name, data, idempotencyKey: null });
  return true;
}

function hasHeardOf(parent: Run, childId: RunId): boolean {
  return (parent.inbox.get(childId)?.takenSeq ?? null) !== null;
}

/** Output and error go in as the JSON text they are, so that nothing is lost in between. */
function childEndedJson(id: RunId, firstId: RunId, end: RunEnd): string {
  const { output, error } = end;
  const returned = output === null ? "" : `"output":${output.json},`;
  const first = firstId === id ? "" : `"first":"${firstId}",`;
  return `{"id":"${id}",${first}"status":"${end.status}",${returned}"error":${error?.json ?? "null"}}`;
}

function childEndedNotes({ output, error }: RunEnd): string | null {
  const of = output?.notes ?? null;
  const why = error?.notes ?? null;
  return of === null && why === null ? null : `{"output":${of ?? "null"},"error":${why ?? "null"}}`;
}
