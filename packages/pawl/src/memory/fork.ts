import type { CreateAnswer, ForkedEvent, NewRun } from "../store/run-record.ts";
import { createRuns } from "./create.ts";
import { moveToReady, newNumbers } from "./rooms.ts";
import { runOf, type State } from "./state.ts";

export function fork(state: State, wanted: NewRun, history: readonly ForkedEvent[]): CreateAnswer {
  if (state.runs.has(wanted.id)) return { kind: "created", id: wanted.id };
  const [answer = { kind: "created", id: wanted.id }] = createRuns(state, [wanted]);
  if (answer.kind !== "created") return answer;
  const run = runOf(state, wanted.id);
  for (const event of history)
    run.events.set(event.seq, { ...event, at: event.at ?? state.now(), workerId: null });
  run.newestSeq = history.length;
  moveToReady(state, run, { ...newNumbers, lastSeq: history.length }, false);
  return answer;
}
