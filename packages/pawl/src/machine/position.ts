import type { State } from "./state.ts";
import type { Cause } from "./wake.ts";

/** Where a machine stands: all that it needs to go on. */
export interface Position {
  readonly input: unknown;
  /** Null before the first step: what the machine starts with is in the record of that. */
  readonly state: State | null;
  readonly step: string;
  readonly cause: Cause;
  /** How often the machine has come to each step. */
  readonly visits: Readonly<Record<string, number>>;
}

const mark = "position of a machine";

/** What a machine gives the run that it goes on as. A map: input that comes from outside as JSON cannot pass for one. */
export function packPosition(position: Position): unknown {
  return new Map([[mark, position]]);
}

/** Where to go on; null where this is the input of a run that begins. */
export function unpackPosition(input: unknown): Position | null {
  return input instanceof Map ? ((input.get(mark) as Position | undefined) ?? null) : null;
}
