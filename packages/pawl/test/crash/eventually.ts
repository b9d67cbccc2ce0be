import { expect } from "vitest";

/** Expects of what may take a while. */
export function eventually<Value>(ask: () => Value | Promise<Value>) {
  return expect.poll(ask, { timeout: 30_000, interval: 20 });
}
