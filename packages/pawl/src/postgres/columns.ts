import type { Payload } from "../core/json.ts";

/** One value of each item, as an array parameter. */
export function column<Item, Value>(items: readonly Item[], pick: (item: Item) => Value): readonly Value[] {
  return items.map(pick);
}

/** The same for a value that most items lack: null for the whole column when all do. */
export function sparseColumn<Item, Value>(
  items: readonly Item[],
  pick: (item: Item) => Value | null | undefined,
): readonly (Value | null)[] | null {
  const values = items.map((item) => pick(item) ?? null);
  return values.every((value) => value === null) ? null : values;
}

export function payloadOf(json: string | null, notes: string | null): Payload | null {
  return json === null ? null : { json, notes };
}

export function sizeOfPayload(payload: Payload | null): number {
  return payload === null ? 0 : payload.json.length + (payload.notes?.length ?? 0);
}
