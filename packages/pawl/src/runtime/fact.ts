import { statusOfChild } from "../core/child-end.ts";
import type { RunEvent } from "../core/event.ts";
import { familyOfTimer, type Family } from "../core/request-key.ts";

/** What a recorded fact means to the code: it answers a request, or says that one was issued. */
export interface FactMeaning {
  readonly family: Family;
  readonly key: string;
  readonly isAnswer: boolean;
}

/** Null for facts about the run itself, which the code does not ask for. */
export function meaningOf({ kind, name }: Pick<RunEvent, "kind" | "name">): FactMeaning | null {
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
      return { family: "child", key: name, isAnswer: false };
    case "child_ended":
      return { family: "child", key: name, isAnswer: true };
    case "commit_lost":
    case "withdrawn":
    case "patched":
    case "published":
    case "update_received":
    case "update_answered":
    case "stream_written":
    case "cancel_requested":
    case "paused":
    case "resumed":
    case "blocked":
    case "attempt_failed":
    case "attempt_crashed":
    case "input_parsed":
    case "rescheduled":
    case "undo_began":
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

/** A step or child that failed. */
export function isFailure(event: RunEvent): boolean {
  if (event.kind === "step_failed") return true;
  return event.kind === "child_ended" && statusOfChild(event.data) !== "completed";
}

/** The name of the `cancel_requested` that a passed deadline leads to; one that somebody sent has none. */
export const deadlineName = "deadline";
