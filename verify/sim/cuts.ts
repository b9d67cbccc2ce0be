/**
 * Cuts make a world smaller: each names a place in its plan or scenario by the keys that lead there. An element of a list is left
 * out, a number becomes 0, anything else null. The seed of a smaller world is that of the one it was cut from, with its cuts.
 */
export type Cut = string;

const separator = "~";

/** What can be null, by its own name or with that of what holds it. */
const nullable: ReadonlySet<string> = new Set([
  "batch",
  "rival",
  "pause",
  "next",
  "retry",
  "undo",
  "cancelAfterMs",
  "terminateAfterMs",
  "delayMs",
  "expiresInMs",
  "timeoutMs",
  "processes.pauseMs",
  "killMs",
  "stopMs",
  "point",
]);
/** Numbers without which a world is simpler. */
const dispensable: ReadonlySet<string> = new Set([
  "dropped",
  "unanswered",
  "overtaken",
  "delayed",
  "heldUp",
  "lost",
  "late",
  "twice",
  "skewMs",
  "meddling",
  "workMs",
  "ms",
  "failures",
  "stickyRuns",
]);
/** Lists and numbers of which one must be left. */
const needed: ReadonlySet<string> = new Set(["startsAtMs", "chains", "workers", "clients"]);

export function readSeed(text: string): { readonly seed: string; readonly cuts: readonly Cut[] } {
  const [seed = "", ...cuts] = text.split(separator);
  return { seed, cuts };
}

export function writeSeed(seed: string, cuts: readonly Cut[]): string {
  return [seed, ...cuts].join(separator);
}

/** Every cut that can be made in this, the largest pieces first. */
export function* listCuts(value: unknown, place: readonly string[] = []): Generator<Cut> {
  const members = membersOf(value);
  const isList = Array.isArray(value) || value instanceof Map;
  if (isList && members.length > (isNeeded(place) ? 1 : 0))
    for (const [key] of members.toReversed()) yield [...place, key].join(".");
  for (const [key, member] of members) {
    const inner = [...place, key];
    if (!isList && isCuttable(inner, member)) yield inner.join(".");
    yield* listCuts(member, inner);
  }
}

function isCuttable(place: readonly string[], value: unknown): boolean {
  if (isNullable(place)) return value !== null;
  if (typeof value !== "number") return false;
  return isNeeded(place) ? value > 1 : value !== 0 && dispensable.has(place.at(-1) ?? "");
}

function isNullable(place: readonly string[]): boolean {
  return nullable.has(place.at(-1) ?? "") || nullable.has(place.slice(-2).join("."));
}

function isNeeded(place: readonly string[]): boolean {
  return needed.has(place.at(-1) ?? "");
}

/** The same without what this names; itself where that is not there. */
export function cutAt<T>(value: T, cut: Cut): T {
  return without(value, cut.split("."), 0) as T;
}

function without(value: unknown, place: readonly string[], depth: number): unknown {
  const key = place[depth];
  if (key === undefined) return simplest(value, place);
  if (Array.isArray(value) || value instanceof Map) {
    const index = Number(key);
    const isLast = depth === place.length - 1;
    const inside = (member: unknown): unknown => without(member, place, depth + 1);
    if (Array.isArray(value))
      return value.flatMap((member: unknown, at) =>
        at !== index ? [member] : isLast ? [] : [inside(member)],
      );
    return new Map(
      [...value].flatMap(([name, member], at) =>
        at !== index ? [[name, member]] : isLast ? [] : [[name, inside(member)]],
      ),
    );
  }
  if (typeof value !== "object" || value === null || !(key in value)) return value;
  return { ...value, [key]: without((value as Record<string, unknown>)[key], place, depth + 1) };
}

function simplest(value: unknown, place: readonly string[]): unknown {
  if (isNullable(place) || typeof value !== "number") return null;
  return isNeeded(place) ? value - 1 : 0;
}

function membersOf(value: unknown): readonly (readonly [string, unknown])[] {
  if (value instanceof Map) return [...value.values()].map((member, index) => [String(index), member]);
  return typeof value === "object" && value !== null ? Object.entries(value) : [];
}
