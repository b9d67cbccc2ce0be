import type { RunEvent } from "../core/event.ts";
import { meaningOf } from "../core/fact.ts";
import { describeError } from "../core/recorded-error.ts";
import type { Family } from "../core/request-key.ts";
import type { ContinuationTerms } from "./continue-as.ts";
import type { Request } from "./request.ts";

/** How a history and the code that should have made it differ: data of a `blocked` event. */
export interface Difference {
  readonly message: string;
  /** Facts of the history that the code does not ask for. */
  readonly expected: readonly {
    readonly seq: number;
    readonly kind: string;
    readonly family: Family;
    readonly key: string;
  }[];
  /** What the code asks for instead, and the history does not hold. */
  readonly found: readonly { readonly family: Family; readonly key: string }[];
}

/** How the code came to its end. */
export type CodeEnd =
  | { readonly kind: "returned"; readonly output: unknown }
  | { readonly kind: "threw"; readonly error: unknown }
  | { readonly kind: "continued"; readonly terms: ContinuationTerms }
  | { readonly kind: "blocked"; readonly reason: string };

const most = 10;

export function findDifference(
  unasked: readonly RunEvent[],
  requests: readonly Request[],
  end: CodeEnd | null,
): Difference {
  const expected = unasked.slice(0, most).flatMap((event) => {
    const meaning = meaningOf(event);
    return meaning === null
      ? []
      : [{ seq: event.seq, kind: event.kind, family: meaning.family, key: meaning.key }];
  });
  const held = requests.filter(({ state, family }) => state === "held" && family !== "update");
  const found = held.slice(0, most).map(({ family, key }) => ({ family, key }));
  return { message: writeMessage(expected, found, end), expected, found };
}

function writeMessage(
  expected: Difference["expected"],
  found: Difference["found"],
  end: CodeEnd | null,
): string {
  const missing = expected.map(({ family, key, seq }) => `${family} "${key}" (event ${seq})`).join(", ");
  const instead = found.map(({ family, key }) => `${family} "${key}"`).join(", ");
  const asks = instead === "" ? "" : ` It asks for ${instead} instead.`;
  return (
    `The code no longer fits the run's history: it does not ask for ${missing}.${asks}${writeEnd(end)} ` +
    "Nothing was executed. Deploy code that fits: the code from before, or the change behind ctx.patch(id). " +
    "A change that cannot be put so needs a new version of the workflow. The run goes on once a worker has such code."
  );
}

function writeEnd(end: CodeEnd | null): string {
  if (end === null) return "";
  if (end.kind === "returned") return " It has returned.";
  if (end.kind === "continued") return " It goes on as another run.";
  if (end.kind === "blocked") return ` It says: ${end.reason}`;
  const { name, message } = describeError(end.error);
  return ` It has thrown ${name}: ${message}.`;
}
