import { expect } from "vitest";
import "./patience.ts";

/** Expects of what may take a while. */
export function eventually<Value>(ask: () => Value) {
  return expect.poll(ask, { timeout: 30_000, interval: 10 });
}
