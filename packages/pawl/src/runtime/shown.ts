import type { Payload } from "../core/json.ts";

/** What a step's call answers that publishes something with its result. */
export class Shown {
  readonly result: unknown;
  readonly values: ReadonlyMap<string, Payload | null>;

  constructor(result: unknown, values: ReadonlyMap<string, Payload | null>) {
    this.result = result;
    this.values = values;
  }
}
