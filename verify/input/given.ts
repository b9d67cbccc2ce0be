import fc from "fast-check";
import { junk } from "../../packages/pawl/test/bad-input/junk.ts";
import { richValue } from "../../packages/pawl/test/core/rich-value.ts";
import type { Rng } from "../sim/rng.ts";

/** A value to be given to somebody. */
export interface Given {
  /** How to make it, in words. */
  readonly label: string;
  /** Made anew for each call. */
  readonly make: () => unknown;
  /** What comes back of it need not be equal. */
  readonly changes: boolean;
}

/** What has a meaning in SQL, in JSON, in a path or to a formatter, to be strung together. */
const pieces = [
  ..."'\"`$%_\\;()[]{}|&,:=<>*/-+#?!@~^ \t\n\r0aé\u202e🎉".split(/(?:)/u),
  "\0",
  "\ud800",
  "''",
  '""',
  "$$",
  "$1",
  "$x$",
  "--",
  "/*",
  "*/",
  "||",
  "\\'",
  "\\u0000",
  "%s",
  "%00",
  "::text",
  "::uuid",
  " or 1=1",
  " union select null",
  "; drop table run",
  "pg_sleep(9)",
  "chr(0)",
  "{schema}",
  "{clock}",
  "null",
  "true",
  "NaN",
  "infinity",
  "default",
  "signal:",
  "../",
  "x".repeat(64),
  "é".repeat(60),
];

/** A text that would do harm where it is not only a text. */
export function pickText(rng: Rng): Given {
  const text = Array.from({ length: 1 + rng.below(8) }, () => rng.pick(pieces)).join("");
  return { label: JSON.stringify(text), make: () => text, changes: false };
}

/** Anything: right, wrong, or wrong deep inside of what is right. */
export function pickGiven(rng: Rng): Given {
  if (rng.chance(0.4)) return pickJunk(rng);
  if (rng.chance(0.25)) return pickText(rng);
  const rich = pickRich(rng);
  return rng.chance(0.6) ? rich : wrap(rng.pick(["list", "object", "map"]), rich, pickJunk(rng));
}

function pickJunk(rng: Rng): Given {
  const { label, make, changes = false } = rng.pick(junk);
  return { label, make, changes };
}

/** What can be stored, in any shape. */
function pickRich(rng: Rng): Given {
  const [value] = fc.sample(richValue, { seed: rng.below(2 ** 31), numRuns: 1 });
  return { label: fc.stringify(value), make: () => value, changes: false };
}

type Wrap = "list" | "object" | "map";

function wrap(as: Wrap, rich: Given, bad: Given): Given {
  const label = `${as} of (${rich.label}) and (${bad.label})`;
  const make = (): unknown => {
    const [one, other] = [rich.make(), bad.make()];
    if (as === "list") return [one, other];
    return as === "map" ? new Map([[one, other]]) : { one, other };
  };
  return { label, make, changes: bad.changes };
}

/** Smaller ones that may fail in the same way. */
export function* smaller(given: Given): Generator<Given> {
  for (const simple of [undefined, null, 0, "", {}, []])
    yield { label: fc.stringify(simple), make: () => simple, changes: false };
  for (const { label, make, changes = false } of junk)
    if (given.label.includes(label) && given.label !== label) yield { label, make, changes };
  yield* parts(given);
}

function* parts({ make, changes }: Given): Generator<Given> {
  for (const part of membersOf(make)) yield { label: fc.stringify(part), make: () => part, changes };
}

function membersOf(make: () => unknown): readonly unknown[] {
  try {
    const value = make();
    if (typeof value === "string")
      return value.length < 2 ? [] : [value.slice(0, value.length / 2), value.slice(value.length / 2)];
    if (typeof value !== "object" || value === null) return [];
    if (value instanceof Map) return [...value.keys(), ...value.values()];
    return value instanceof Set ? [...value] : Object.values(value);
  } catch {
    return [];
  }
}
