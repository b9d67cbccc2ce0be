import { afterEach, beforeEach, expect } from "vitest";

const prototypes = [Object.prototype, Array.prototype, Function.prototype, Promise.prototype, Date.prototype];

/** In every test of the file: no rejection is left to nobody, and no prototype is changed. */
export function watchProcess(): void {
  let shapes: readonly unknown[] = [];
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);

  beforeEach(() => {
    shapes = prototypes.map((prototype) => Reflect.ownKeys(prototype));
    unhandled.length = 0;
    process.on("unhandledRejection", note);
  });

  afterEach(async () => {
    await new Promise((resolve) => void setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
    expect(prototypes.map((prototype) => Reflect.ownKeys(prototype))).toEqual(shapes);
  });
}
