import type { RunEvent } from "../core/event.ts";
import type { Payload } from "../core/json.ts";
import { describeError } from "../core/recorded-error.ts";

/** What an `attempt_failed` or `failed` fact says: the error, and the failures that the code had dealt with by asking for more. */
export function describeFailedAttempt(thrown: unknown, handled: readonly number[]): Payload {
  const error = describeError(thrown);
  return { json: JSON.stringify(handled.length === 0 ? error : { ...error, handled }), notes: null };
}

/** The `seq`s of the failures that this fact says were dealt with. */
export function handledFailures({ kind, data }: RunEvent): readonly number[] {
  if ((kind !== "attempt_failed" && kind !== "failed") || data === null) return [];
  const { handled = [] } = JSON.parse(data.json) as { readonly handled?: readonly number[] };
  return handled;
}
