import { PawlError } from "./error.ts";

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
type DurationUnit = keyof typeof unitMs;

/** A length of time: ms as a number, or a number with a unit: `"250ms"`, `"30s"`, `"5m"`, `"1.5h"`, `"7d"`, `"2w"`. */
export type Duration = number | `${number}${DurationUnit}`;

const form = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/;

/**
 * The duration in whole ms, rounded to the nearest.
 * @param option what to call it in the error
 * @throws {PawlError} `INVALID_OPTION` unless it is a finite length of time, zero or more, in a known unit
 */
export function parseDuration(duration: string | number, option = "duration"): number {
  const ms = typeof duration === "string" ? parseText(duration) : duration;
  if (typeof ms === "number" && ms >= 0 && ms <= Number.MAX_SAFE_INTEGER) return Math.round(ms);
  const given = describe(duration);
  throw new PawlError(
    "INVALID_OPTION",
    `The ${option} ${given} is not a length of time: give ms as a number, or a number with ms, s, m, h, d or w, such as "30s".`,
    { option, given },
  );
}

/** A thousand years: with it, instants stay within the calendar of every store. */
export const longestDurationMs = parseDuration("365000d");

/** Whatever it is, in a few letters. */
function describe(duration: unknown): string {
  if (typeof duration === "number") return String(duration);
  return typeof duration === "string" ? JSON.stringify(duration.slice(0, 80)) : `of type ${typeof duration}`;
}

function parseText(text: string): number {
  const match = form.exec(text);
  return match ? Number(match[1]) * unitMs[match[2] as DurationUnit] : Number.NaN;
}
