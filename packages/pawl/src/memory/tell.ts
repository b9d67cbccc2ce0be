import type { RunId } from "../core/ids.ts";
import type { NewMessage, TellAnswer } from "../store/message.ts";
import { chainEndOf } from "./continue.ts";
import { addMessage } from "./inbox.ts";
import type { Run, State } from "./state.ts";
import { wake } from "./wake.ts";

export function tell(state: State, message: NewMessage): TellAnswer {
  const run = state.runs.get(message.runId);
  if (!run) return "missing";
  const answer = storeMessage(state, run, message);
  if (answer !== "ended") wake(state, [run]);
  return answer;
}

function storeMessage(
  state: State,
  run: Run,
  message: NewMessage,
  sentTo: RunId | null = null,
): "accepted" | "duplicate" | "ended" {
  const { id, topic, data, idempotencyKey } = message;
  if (run.inbox.has(id)) return "accepted";
  if (idempotencyKey !== null && run.idempotencyKeys.has(idempotencyKey)) return "duplicate";
  if (!run.room) return "ended";
  const sent = { sentAt: state.now(), sentTo, takenSeq: null, answerSeq: null };
  addMessage(state, run, { id, topic, name: null, data, idempotencyKey, ...sent });
  return "accepted";
}

export function wakeTold(state: State, runIds: readonly RunId[]): void {
  const runs = runIds.map((runId) => state.runs.get(runId)).filter((run) => run !== undefined);
  wake(state, runs);
}

/** What a caller's own transaction does: the message is there once it commits, and nobody has been woken. */
export function insertMessage(state: State, message: NewMessage): void {
  const run = state.runs.get(message.runId);
  if (!run) return;
  const last = chainEndOf(state, run);
  storeMessage(state, last, message, last === run ? null : run.id);
  state.hints.add({ kind: "sent", runId: last.id });
}
