import type { RunEvent } from "./event.ts";
import type { Payload } from "./json.ts";

/** What an `attempt_failed` or `failed` fact says: the error, and the failures that the code had dealt with by asking for more. */
export function describeFailedAttempt(error: Payload, handled: readonly number[]): Payload {
  if (handled.length === 0) return error;
  const members = JSON.parse(error.json) as object;
  // Beside the error, sealed or not: these numbers are the engine's own.
  return { json: JSON.stringify({ ...members, handled }), notes: error.notes };
}

/** The `seq`s of the failures that this fact says were dealt with. */
export function handledFailures({ kind, data }: RunEvent): readonly number[] {
  if ((kind !== "attempt_failed" && kind !== "failed") || data === null) return [];
  const { handled = [] } = JSON.parse(data.json) as { readonly handled?: readonly number[] };
  return handled;
}
