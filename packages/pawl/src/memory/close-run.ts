import type { RunEnd } from "../store/run-record.ts";
import { cancelFromParentId, putAgain, putMessage } from "./inbox.ts";
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
  if (parent?.room) {
    tellParent(state, parent, run, end);
    told.push(parent);
  }

  if (end.status === "cancelled" || end.status === "timed_out") {
    for (const childId of run.childIds) {
      const child = runOf(state, childId);
      if (!child.room) continue;
      const id = cancelFromParentId(childId, run.id);
      const data = { json: `{"reason":"parent"}`, notes: null };
      putAgain(state, child, { id, topic: "cancel", name: null, data, idempotencyKey: null });
      told.push(child);
    }
  }
  return told;
}

/** Leaves word of how a child ended. */
export function tellParent(state: State, parent: Run, child: Run, end: RunEnd): void {
  const data = { json: childEndedJson(child.id, end), notes: childEndedNotes(end) };
  const { id, parentRequest: name } = child;
  putMessage(state, parent, { id, topic: "child", name, data, idempotencyKey: null });
}

/** Output and error go in as the JSON text they are, so that nothing is lost in between. */
function childEndedJson(id: string, end: RunEnd): string {
  const { output, error } = end;
  const returned = output === null ? "" : `"output":${output.json},`;
  return `{"id":"${id}","status":"${end.status}",${returned}"error":${error?.json ?? "null"}}`;
}

function childEndedNotes({ output, error }: RunEnd): string | null {
  const of = output?.notes ?? null;
  const why = error?.notes ?? null;
  return of === null && why === null ? null : `{"output":${of ?? "null"},"error":${why ?? "null"}}`;
}
