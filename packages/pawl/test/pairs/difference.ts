import { isDeepStrictEqual } from "node:util";
import type { Outcome } from "./race.ts";

/** Where an outcome is not one of those expected, a line for each place. */
export function describeDifferences({ answers, snapshot }: Outcome, expected: readonly Outcome[]): string {
  return expected
    .map((other) =>
      [...differences("", { answers, snapshot }, other)].map((line) => `    ${line}`).join("\n"),
    )
    .join("\n  or\n");
}

function* differences(path: string, actual: unknown, expected: unknown): Generator<string> {
  if (isDeepStrictEqual(actual, expected)) return;
  if (!isObject(actual) || !isObject(expected)) {
    yield `${path}: ${show(actual)}, not ${show(expected)}`;
    return;
  }
  const keys = new Set([...Object.keys(actual), ...Object.keys(expected)]);
  for (const key of keys) yield* differences(`${path}.${key}`, actual[key], expected[key]);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !(value instanceof Map);
}

function show(value: unknown): string {
  if (value === undefined) return "nothing";
  return value instanceof Map ? `Map ${JSON.stringify([...value])}` : JSON.stringify(value);
}
