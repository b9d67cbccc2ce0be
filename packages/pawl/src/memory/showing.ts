import type { RunId } from "../core/ids.ts";
import { isStartedAnew } from "../core/present-life.ts";
import { publishedKey } from "../core/request-key.ts";
import type {
  AnswerRecord,
  NewStreamItem,
  PublishedRecord,
  Question,
  StreamPage,
  StreamPlace,
} from "../store/showing.ts";
import { loadHistory } from "./read.ts";
import { compareText } from "./sorted-list.ts";
import type { Run, State } from "./state.ts";

export function readPublished(state: State, runId: RunId, key: string | null): readonly PublishedRecord[] {
  const published = new Map<string, PublishedRecord>();
  for (const event of loadHistory(state, runId, 0)) {
    if (isStartedAnew(event)) published.clear();
    const { kind, name, data, at } = event;
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

/** Appends what is not there yet. */
export function writeStreams(state: State, run: Run, items: readonly NewStreamItem[]): void {
  for (const { name, ...item } of items) {
    const stream = run.streams.get(name) ?? [];
    run.streams.set(name, stream);
    if (stream.length >= item.position) continue;
    stream.push({ ...item, at: state.now() });
    state.hints.add({ kind: "written", runId: run.id });
  }
}

/** Takes back that streams of a run were closed. What is written next gets the closing's position. */
export function reopenStreams(run: Run): void {
  for (const stream of run.streams.values()) if (stream.at(-1)?.isClosing) stream.pop();
}

export function readStream(
  state: State,
  { runId, name, after }: StreamPlace,
  limit: number,
): StreamPage | null {
  const run = state.runs.get(runId);
  if (!run) return null;
  return { items: (run.streams.get(name) ?? []).slice(after, after + limit), isEnded: run.room === null };
}

export function hasWritten(state: State, { runId, name, after }: StreamPlace): boolean {
  const run = state.runs.get(runId);
  return !run?.room || (run.streams.get(name)?.length ?? 0) > after;
}

export function lastPositions(
  state: State,
  runId: RunId,
  names: readonly string[],
): ReadonlyMap<string, number> {
  const streams = state.runs.get(runId)?.streams;
  return new Map(
    names.flatMap((name) => {
      const last = streams?.get(name)?.length ?? 0;
      return last === 0 ? [] : [[name, last] as const];
    }),
  );
}
