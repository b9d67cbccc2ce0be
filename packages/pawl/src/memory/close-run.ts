import type { RunId } from "../core/ids.ts";
import type { RunEnd } from "../store/run-record.ts";
import { cancelFromParentId, replaceMessage } from "./inbox.ts";
import { leaveRooms } from "./rooms.ts";
import { runOf, type Run, type State } from "./state.ts";

/**
 * Ends a run: tells its live parent, and asks its live children to stop if it was cancelled or timed out. Answers
 * those it told, whom the caller wakes: `wake` ends runs itself, so it cannot be called from here.
 */
export function closeRun(state: State, run: Run, end: RunEnd): readonly Run[] {
  leaveRooms(state, run, end);
  const told: Run[] = [];

  const parent = run.parentId === null ? undefined : state.runs.get(run.parentId);
  // A run that goes on as another has nothing to tell.
  if (run.continuedAs === null && parent?.room && tellParent(state, parent, run, end)) told.push(parent);

  if (end.status === "cancelled" || end.status === "timed_out") {
    for (const childId of run.childIds) {
      const child = runOf(state, childId);
      if (!child.room) continue;
      const id = cancelFromParentId(childId, run.id);
      const data = { json: `{"reason":"parent"}`, notes: null };
      // One of an earlier life may be there.
      replaceMessage(state, child, { id, topic: "cancel", name: null, data, idempotencyKey: null });
      told.push(child);
    }
  }
  return told;
}

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
