import type { RunId } from "../core/ids.ts";
import { publishedKey } from "../core/request-key.ts";
import type { AnswerRecord, PublishedRecord, Question } from "../store/showing.ts";
import { loadHistory } from "./read.ts";
import { compareText } from "./sorted-list.ts";
import type { State } from "./state.ts";

export function readPublished(state: State, runId: RunId, key: string | null): readonly PublishedRecord[] {
  const published = new Map<string, PublishedRecord>();
  for (const { kind, name, data, at } of loadHistory(state, runId, 0)) {
    if (kind !== "published" || name === null) continue;
    const publishedUnder = publishedKey(name);
    if (key === null || key === publishedUnder)
      published.set(publishedUnder, { key: publishedUnder, name, data, at });
  }
  return [...published.values()].sort((a, b) => compareText(a.key, b.key));
}

export function getAnswer(state: State, { runId, messageId, idempotencyKey }: Question): AnswerRecord {
  const run = state.runs.get(runId);
  const message =
    run?.inbox.get(messageId) ??
    [...(run?.inbox.values() ?? [])].find(
      (other) => idempotencyKey !== null && other.idempotencyKey === idempotencyKey,
    );
  const event = run?.events.get(message?.answerSeq ?? 0);
  return {
    topic: message?.topic ?? null,
    answer: event === undefined ? null : { name: event.name, data: event.data },
    isEnded: !run?.room,
  };
}
