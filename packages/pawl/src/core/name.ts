import { PawlError } from "./error.ts";

const longestBytes = 255;

/**
 * Refuses a name that a store could not hold exactly.
 * @param what says whose name it is, as in `step`
 * @throws {PawlError} `INVALID_NAME`
 */
export function assertName(what: string, name: unknown): asserts name is string {
  const fault = nameFault(name);
  if (fault === null) return;
  throw new PawlError("INVALID_NAME", `A ${what}'s name ${fault}.`, { what });
}

/** What keeps this from being a name, as in "must not be empty". */
export function nameFault(name: unknown): string | null {
  if (typeof name !== "string") return "must be a string";
  if (name === "") return "must not be empty";
  if (name.includes("\0")) return "must not hold NUL characters";
  if (hasLoneSurrogate(name)) return "must be well-formed Unicode";
  // A character takes three bytes at most: few names need be counted.
  const isLong = 3 * name.length > longestBytes && byteLength(name) > longestBytes;
  return isLong ? `must not be longer than ${longestBytes} bytes` : null;
}

const longestIdentifierBytes = 63;

/** What keeps this from being an identifier of Postgres, which cuts longer ones short. */
export function identifierFault(name: unknown): string | null {
  const isOne =
    typeof name === "string" &&
    name !== "" &&
    !name.includes("\0") &&
    !hasLoneSurrogate(name) &&
    byteLength(name) <= longestIdentifierBytes;
  return isOne ? null : `must have 1 to ${longestIdentifierBytes} bytes of valid text without NUL`;
}

/** Half of a character that takes two: cannot be written as UTF-8. */
export function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed();
}

/** Length as UTF-8. */
export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
