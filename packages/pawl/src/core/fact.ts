import { isStartAlone, statusOfChild } from "./child-end.ts";
import { encode } from "./codec.ts";
import type { RunEvent } from "./event.ts";
import type { Payload } from "./json.ts";
import { familyOfTimer, isPublishedWithStep, type Family } from "./request-key.ts";

/** Whether an operator has paused or resumed the run: the code's own pauses have a name. */
export function isOrder({ kind, name }: Pick<RunEvent, "kind" | "name">): boolean {
  return (kind === "paused" || kind === "resumed") && name === null;
}

/** What a recorded fact means to the code: it answers a request, or says that one was issued. */
export interface FactMeaning {
  readonly family: Family;
  readonly key: string;
  readonly isAnswer: boolean;
}

/** Null for facts about the run itself, which the code does not ask for. */
export function meaningOf({
  kind,
  name,
  data,
}: Pick<RunEvent, "kind" | "name" | "data">): FactMeaning | null {
  if (name === null) return null;
  switch (kind) {
    case "step_completed":
    case "step_failed":
      return { family: "step", key: name, isAnswer: true };
    case "step_intended":
    case "step_retried":
    case "step_progressed":
      return { family: "step", key: name, isAnswer: false };
    case "timer_set":
      return { family: familyOfTimer(name), key: name, isAnswer: false };
    case "timer_fired":
      return { family: familyOfTimer(name), key: name, isAnswer: true };
    case "signal_received":
      return { family: "wait", key: name, isAnswer: true };
    case "child_started":
      return isStartAlone(data)
        ? { family: "start", key: name, isAnswer: true }
        : { family: "child", key: name, isAnswer: false };
    case "child_ended":
      return { family: "child", key: name, isAnswer: true };
    case "published":
      return isPublishedWithStep(name) ? null : { family: "publish", key: name, isAnswer: true };
    case "update_received":
      return { family: "update", key: name, isAnswer: true };
    case "update_answered":
      return { family: "answer", key: name, isAnswer: true };
    case "stream_written":
      return { family: "stream", key: name, isAnswer: true };
    case "paused":
      return { family: "pause", key: name, isAnswer: false };
    case "resumed":
      return { family: "pause", key: name, isAnswer: true };
    case "withdrawn":
      return { family: familyWithdrawn(data), key: name, isAnswer: false };
    case "commit_lost":
    case "patched":
    case "cancel_requested":
    case "blocked":
    case "attempt_failed":
    case "attempt_crashed":
    case "input_parsed":
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
      return null;
    default:
      return kind satisfies never;
  }
}

/** A request among all of a run's: a key alone does not say what was asked for. */
export function requestId({ family, key }: Pick<FactMeaning, "family" | "key">): string {
  return `${family} ${key}`;
}

/** What is begun anew when this is set aside: a child that failed is started again, though its start did not fail. */
export function idsOf({ family, key }: Pick<FactMeaning, "family" | "key">): readonly string[] {
  const families = family === "child" ? (["child", "start"] as const) : [family];
  return families.map((each) => requestId({ family: each, key }));
}

/**
 * What is left of a fact that is set aside. The start of a child keeps its place: what the code did next, which is not set aside,
 * came after it.
 */
export function leftOf(event: RunEvent): readonly RunEvent[] {
  return meaningOf(event)?.family === "start" ? [{ ...event, isVacant: true }] : [];
}

/** A fact that takes the place of an earlier one, as if it had come then. */
export function inPlaceOf({ seq, at }: RunEvent, event: RunEvent): RunEvent {
  return { ...event, seq, at };
}

/** A step or child that failed. */
export function isFailure(event: RunEvent): boolean {
  if (event.kind === "step_failed") return true;
  return event.kind === "child_ended" && statusOfChild(event.data) !== "completed";
}

/**
 * A failure that no new attempt sets aside: the step must not be called again, unless the run is redriven.
 * @param lifeBegan the `seq` of the last `redriven`
 */
export function isFinalFailure({ kind, data, seq }: RunEvent, lifeBegan: number): boolean {
  if (kind !== "step_failed" || seq < lifeBegan || data?.json.includes("STEP_CRASHED") !== true) return false;
  return (JSON.parse(data.json) as { readonly code?: string }).code === "STEP_CRASHED";
}

/** The name of the `cancel_requested` that a passed deadline leads to; one that somebody sent has none. */
export const deadlineName = "deadline";

/** Data of a `withdrawn` fact: a request's name alone does not say what it asked for. */
export function describeWithdrawn(family: Family): Payload | null {
  return encode({ family });
}

function familyWithdrawn(data: Payload | null): Family {
  return (JSON.parse(data?.json ?? "{}") as { readonly family: Family }).family;
}
