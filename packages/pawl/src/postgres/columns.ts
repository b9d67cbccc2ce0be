import type { Payload } from "../core/json.ts";

type Value = string | number | boolean | null;

/** One value of each item, as an array parameter. */
export function column<Item>(items: readonly Item[], pick: (item: Item) => Value): ArrayParameter {
  return arrayOf(items.map(pick));
}

/** The same for ids, numbers and words of ours, which Postgres reads as they are. */
export function bareColumn<Item>(items: readonly Item[], pick: (item: Item) => string | number): string {
  return `{${items.map(pick).join(",")}}`;
}

/** The same where one value says it of all, if they have the same. */
export function commonColumn<Item>(items: readonly Item[], pick: (item: Item) => string | number): string {
  const values = items.map(pick);
  const [first = ""] = values;
  return values.every((value) => value === first) ? `{${first}}` : `{${values.join(",")}}`;
}

/**
 * The same for a value that most items lack: null for the whole column when all do. `mayBeCommon`: one value says it of all, if they
 * have the same.
 */
export function sparseColumn<Item>(
  items: readonly Item[],
  pick: (item: Item) => Value | undefined,
  mayBeCommon = false,
): ArrayParameter | null {
  const values = items.map((item) => pick(item) ?? null);
  const [first = null] = values;
  if ((first === null || mayBeCommon) && values.every((value) => value === first))
    return first === null ? null : arrayOf([first]);
  return arrayOf(values);
}

/** In the words of Postgres, or as the driver writes it in them. */
type ArrayParameter = string | readonly Value[];

/** What JSON writes otherwise than Postgres reads it: line breaks and the like, and halves of a character. Not after a backslash that is one. */
const written = /(?:^|[^\\])(?:\\\\)*\\[bfnrtu]/;

/**
 * But for its brackets, JSON writes a list of such values as Postgres does, and in one go. The driver, which looks at each value by
 * itself, made a twelfth of a worker's garbage.
 */
function arrayOf(values: readonly Value[]): ArrayParameter {
  for (const value of values) if (typeof value === "number" && !Number.isFinite(value)) return values;
  const json = JSON.stringify(values);
  return written.test(json) ? values : `{${json.slice(1, -1)}}`;
}

export function payloadOf(json: string | null, notes: string | null): Payload | null {
  return json === null ? null : { json, notes };
}

export function sizeOfPayload(payload: Payload | null): number {
  return payload === null ? 0 : payload.json.length + (payload.notes?.length ?? 0);
}
