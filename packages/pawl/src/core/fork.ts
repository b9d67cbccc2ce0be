import { attemptBegan, withoutOpenFailures } from "./earlier-attempts.ts";
import type { RunEvent } from "./event.ts";
import { inPlaceOf, isFailure, isOrder, meaningOf, requestId } from "./fact.ts";
import { forkOf, type Fork } from "./forked.ts";
import { presentLife } from "./present-life.ts";
import { requestKey } from "./request-key.ts";

/** What a run that is forked takes along. */
export interface Prefix {
  /** The fact that it ends before. */
  readonly seq: number;
  /** What earlier attempts did: the code need not ask for all of it again. */
  readonly earlier: readonly RunEvent[];
  readonly present: readonly RunEvent[];
  readonly fork: Omit<Fork, "from">;
}

/**
 * The facts that the source remembers from before this request began, without those about the run itself and without what
 * had begun and not ended by then: that begins anew.
 * @param from the request's key, or the name of one that stands in no scope
 * @returns null where there is no such request
 */
export function prefixBefore(
  from: string,
  history: readonly RunEvent[],
  source: { readonly id: string; readonly createdAt: number },
): Prefix | null {
  const life = presentLife(history);
  const known = withoutOpenFailures(life);
  const vacant = uniqueByName(known.filter(({ isVacant }) => isVacant === true));
  const remembered = inPlaces(known, vacant);
  const keys = [from, requestKey("", from, 1)];
  const isIts = (event: RunEvent): boolean => meaningOf(event) !== null && keys.includes(event.name ?? "");
  // What has only failed, and would be tried again, is not remembered: there the code had come to it.
  const first = remembered.find(isIts) ?? life.find(isIts);
  if (first === undefined) return null;
  const ends = endsOfStarted(remembered, first.seq);
  const before = [
    ...remembered.filter((event) => event.seq < first.seq && !isAboutRun(event)),
    ...ends.filter(({ seq }) => seq > first.seq),
  ];
  const answered = new Set(before.filter(isAnswer).map(requestOf));
  const begunAnew = new Set([...undoneSteps(life), ...unendedStarts(before, ends)]);
  const isKept = (event: RunEvent): boolean =>
    meaningOf(event) === null || (answered.has(requestOf(event)) && !begunAnew.has(requestOf(event)));
  // A child that is started anew keeps the place of its start, where the code has come by it.
  const unfilled = vacant.filter((event) => event.seq < first.seq && !remembered.some(isSameStart(event)));
  const startedAnew = [...unfilled, ...before.filter((event) => isStart(event) && !isKept(event))];
  const copied = [...before.filter(isKept), ...startedAnew].map(asRecorded).toSorted(bySeq);
  // What follows on something that begins anew is there for the code to come by, but need not be.
  const hasGap = startedAnew.length > 0 || before.some((event) => begunAnew.has(requestOf(event)));
  const boundary = hasGap ? Infinity : attemptBegan(life);
  const delivered = copied.filter((event) => meaningOf(event)?.isAnswer === true).length;
  const was = forkOf(life);
  const inherited = (was?.seeds ?? []).map(({ runId, until }) => ({
    runId,
    until: Math.min(until, delivered),
  }));
  return {
    seq: first.seq,
    earlier: copied.filter(({ seq }) => seq < boundary),
    present: copied.filter(({ seq }) => seq >= boundary),
    fork: {
      seq: first.seq,
      since: was?.since ?? source.createdAt,
      seeds: [...inherited, { runId: source.id, until: delivered }],
      ...(startedAnew.length > 0 && { startedAnew: startedAnew.map(({ name }) => name ?? "") }),
    },
  };
}

/** As the code was given them: a start that took the place of an earlier one, there. */
function inPlaces(history: readonly RunEvent[], vacant: readonly RunEvent[]): readonly RunEvent[] {
  const others = history.filter(({ isVacant }) => isVacant !== true);
  if (vacant.length === 0) return others;
  const placed = others.map((event) => {
    const place = isStart(event) ? vacant.find(isSameStart(event)) : undefined;
    return place === undefined ? event : inPlaceOf(place, event);
  });
  return placed.toSorted(bySeq);
}

function asRecorded(event: RunEvent): RunEvent {
  const { isVacant: _, ...recorded } = event;
  return recorded;
}

function bySeq(a: RunEvent, b: RunEvent): number {
  return a.seq - b.seq;
}

function isSameStart(start: RunEvent): (event: RunEvent) => boolean {
  return (event) => isStart(event) && event.name === start.name;
}

/** The first of each. */
function uniqueByName(events: readonly RunEvent[]): readonly RunEvent[] {
  return [...new Map(events.toReversed().map((event) => [event.name, event])).values()];
}

/** What was undone has not been done; nor has what will be, by a run that is at it. */
function undoneSteps(life: readonly RunEvent[]): readonly string[] {
  if (!life.some(({ kind }) => kind === "undo_began")) return [];
  const completed = new Set(life.filter(({ kind }) => kind === "step_completed").map(({ name }) => name));
  const failed = new Set(life.filter(({ kind }) => kind === "undo_failed").map(({ name }) => name));
  return life
    .filter(
      ({ kind, name, data }) =>
        kind === "step_intended" && data !== null && completed.has(name) && !failed.has(name),
    )
    .map(({ name }) => `step ${name}`);
}

/** How children ended well that were started before, and that the code may ask about yet: nobody else tells the fork. */
function endsOfStarted(history: readonly RunEvent[], before: number): readonly RunEvent[] {
  const started = new Set(
    history.filter((event) => event.seq < before && isStart(event)).map(({ name }) => name),
  );
  return history.filter(
    (event) => event.kind === "child_ended" && started.has(event.name) && !isFailure(event),
  );
}

/** A child that has not ended belongs to the source alone: the fork would never hear of it. */
function unendedStarts(before: readonly RunEvent[], ends: readonly RunEvent[]): readonly string[] {
  const ended = new Set(ends.map(({ name }) => name));
  return before
    .filter((event) => isStart(event) && !ended.has(event.name))
    .flatMap((event) => [`start ${event.name}`, `child ${event.name}`]);
}

function isStart(event: RunEvent): boolean {
  return meaningOf(event)?.family === "start";
}

/** The keys of what the code has asked for, in order, each once. */
export function requestKeys(history: readonly RunEvent[]): readonly string[] {
  const asked = presentLife(history).filter((event) => meaningOf(event) !== null);
  return [...new Set(asked.map(({ name }) => name ?? ""))];
}

function isAnswer(event: RunEvent): boolean {
  return meaningOf(event)?.isAnswer === true || event.kind === "withdrawn";
}

function requestOf(event: RunEvent): string {
  const meaning = meaningOf(event);
  return meaning === null ? "" : requestId(meaning);
}

/** What happened to a run rather than in its code. */
function isAboutRun(event: RunEvent): boolean {
  switch (event.kind) {
    case "paused":
    case "resumed":
      return isOrder(event);
    case "cancel_requested":
    case "blocked":
    case "commit_lost":
    case "attempt_failed":
    case "attempt_crashed":
    case "rescheduled":
    case "undo_began":
    case "undo_retried":
    case "undo_completed":
    case "undo_failed":
    case "forked":
    case "redriven":
    case "continued":
    case "completed":
    case "failed":
    case "cancelled":
    case "timed_out":
    case "expired":
      return true;
    case "step_intended":
    case "step_completed":
    case "step_failed":
    case "step_retried":
    case "step_progressed":
    case "timer_set":
    case "timer_fired":
    case "signal_received":
    case "child_started":
    case "child_ended":
    case "withdrawn":
    case "patched":
    case "published":
    case "update_received":
    case "update_answered":
    case "stream_written":
    case "input_parsed":
      return false;
    default:
      return event.kind satisfies never;
  }
}
