import { closestWord } from "./closest-word.ts";
import { PawlError } from "./error.ts";

/** What is wrong with one option. Nested options are named by their path, as in `retry.attempts`. */
interface OptionProblem {
  readonly option: string;
  /** A sentence. */
  readonly message: string;
  /** The known option that an unknown one was likely meant to be. */
  readonly closest?: string;
}

/** Something wrong, before it is known whose options they are. */
export type Fault =
  | { readonly kind: "unknown"; readonly option: string; readonly known: readonly string[] }
  | { readonly kind: "wrong"; readonly option: string; readonly fault: string }
  | { readonly kind: "said"; readonly option: string; readonly message: string };

const mostProblems = 20;
const longestName = 80;

/** One error for all that is wrong with somebody's options. */
export function invalidOptions(what: string, faults: readonly Fault[]): PawlError {
  const problems = faults.slice(0, mostProblems).map((fault) => describe(what, fault));
  const [first] = problems;
  const left = faults.length - problems.length;
  const lines = problems.map(({ message }) => `- ${message}`);
  if (left > 0) lines.push(`- And ${left} more.`);
  const message =
    first !== undefined && faults.length === 1
      ? first.message
      : `The options of ${what} have ${faults.length} problems:\n${lines.join("\n")}`;
  return new PawlError("INVALID_OPTION", message, { what, problems });
}

function describe(what: string, fault: Fault): OptionProblem {
  const option = shorten(fault.option);
  if (fault.kind === "said") return { option, message: fault.message };
  if (fault.kind === "wrong") {
    const subject = option === "" ? `The options of ${what}` : `The option "${option}" of ${what}`;
    return { option, message: `${subject} ${fault.fault}.` };
  }
  const closest = closestWord(fault.option, fault.known);
  const hint = closest === null ? `Known are ${fault.known.join(", ")}.` : `Did you mean "${closest}"?`;
  const message = `There is no option "${option}" of ${what}. ${hint}`;
  return closest === null ? { option, message } : { option, message, closest };
}

function shorten(text: string): string {
  return text.length > longestName ? `${text.slice(0, longestName)}…` : text;
}
