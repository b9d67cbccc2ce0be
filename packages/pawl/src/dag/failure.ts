import { PawlError } from "../core/error.ts";
import { describeError } from "../core/recorded-error.ts";

const mostTold = 5;
const longestText = 1_000;

/** Whether this is how a child run ended. */
export function isChildEnd(error: unknown): error is PawlError {
  return PawlError.is(error) && "runId" in error.details;
}

/** What went wrong, in the words of whoever threw it: that it was in a child is known. */
export function tellFailure(error: unknown): string {
  const thrown = isChildEnd(error) ? (error.cause ?? error) : error;
  return shorten(describeError(thrown).message);
}

/** Some of these reasons. */
export function tellSome(reasons: readonly string[]): string {
  const more = reasons.length > mostTold ? `; and ${reasons.length - mostTold} more` : "";
  return shorten(`${reasons.slice(0, mostTold).join("; ")}${more}`);
}

/** One error for all: the engine sees by them what to begin anew when the graph is tried again. */
export function oneError(errors: readonly Error[]): Error | undefined {
  return errors.length < 2 ? errors[0] : new AggregateError(errors, tellSome(errors.map(tellFailure)));
}

/** A text that can be stored stays one: what the cut leaves of a surrogate pair goes too. */
function shorten(text: string): string {
  if (text.length <= longestText) return text;
  return `${text.slice(0, longestText).replace(/\p{Surrogate}$/u, "")}…`;
}
