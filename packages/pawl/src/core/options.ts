import { parseDuration } from "./duration.ts";
import { PawlError } from "./error.ts";

/** Says what a value must be, as in "must be a function", or null where it is that. */
export type Check = (value: unknown) => string | null;

/**
 * Refuses options that are unknown or wrong. An option that is `undefined` counts as not given.
 * @param what whose options they are, as in `workflow`
 * @throws {PawlError} `INVALID_OPTION`
 */
export function checkOptions(what: string, options: unknown, checks: Readonly<Record<string, Check>>): void {
  if (typeof options !== "object" || options === null) {
    throw new PawlError("INVALID_OPTION", `The options of ${what} must be an object.`, { what });
  }
  for (const [option, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, option) ? checks[option] : undefined;
    if (check === undefined) throw unknownOption(what, option, Object.keys(checks));
    const fault = value === undefined ? null : check(value);
    if (fault !== null) throw invalidOption(what, option, fault);
  }
}

/** Refuses options that lack one of these. */
export function requireOptions(what: string, options: object, required: readonly string[]): void {
  const given = options as Readonly<Record<string, unknown>>;
  const missing = required.find((option) => given[option] === undefined);
  if (missing !== undefined) throw invalidOption(what, missing, "must be given");
}

export const checkText: Check = (value) =>
  typeof value === "string" && value !== "" ? null : "must be a text";
export const checkFlag: Check = (value) => (typeof value === "boolean" ? null : "must be true or false");
export const checkObject: Check = (value) =>
  typeof value === "object" && value !== null ? null : "must be an object";
export const checkFunction: Check = (value) => (typeof value === "function" ? null : "must be a function");

export function checkInteger(least: number, most: number = Number.MAX_SAFE_INTEGER): Check {
  return (value) => {
    if (typeof value !== "number" || !Number.isInteger(value)) return "must be a whole number";
    return value >= least && value <= most ? null : `must be from ${least} to ${most}`;
  };
}

export function checkOneOf(...allowed: readonly string[]): Check {
  return (value) =>
    allowed.includes(value as string) ? null : `must be ${allowed.map((word) => `"${word}"`).join(" or ")}`;
}

export const checkDuration: Check = (value) => {
  if (typeof value !== "string" && typeof value !== "number") return 'must be a duration, such as "30s"';
  try {
    parseDuration(value);
    return null;
  } catch {
    return 'must be a duration, such as "30s"';
  }
};

export function invalidOption(what: string, option: string, fault: string): PawlError {
  return new PawlError("INVALID_OPTION", `The option "${option}" of ${what} ${fault}.`, { what, option });
}

function unknownOption(what: string, option: string, known: readonly string[]): PawlError {
  const close = closest(option, known);
  const hint = close === null ? `Known are ${known.join(", ")}.` : `Did you mean "${close}"?`;
  return new PawlError("INVALID_OPTION", `There is no option "${option}" of ${what}. ${hint}`, {
    what,
    option,
    closest: close,
  });
}

/** The known word that is a slip of the pen away, if there is one. */
function closest(word: string, known: readonly string[]): string | null {
  let best: { readonly word: string; readonly distance: number } | null = null;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (best === null || distance < best.distance) best = { word: candidate, distance };
  }
  return best !== null && best.distance <= Math.max(1, Math.floor(best.word.length / 2)) ? best.word : null;
}

/** Insertions, deletions and replacements that lead from one word to the other. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
