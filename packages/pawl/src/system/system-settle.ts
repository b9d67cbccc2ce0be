import type { Settle } from "../core/settle.ts";

/** Taken once: one that a test put in its place, and took away again, would never call back those who wait. */
const immediate = setImmediate;
const nextTick = process.nextTick.bind(process);
let settling: Promise<void> | null = null;

/** All who ask in one turn of the event loop share it. */
export const systemSettle: Settle = (reach) => {
  // Ticks come when no promise is left that could go on.
  if (reach === "promises") return new Promise((resolve) => nextTick(resolve));
  settling ??= new Promise((resolve) => {
    immediate(() => {
      settling = null;
      resolve();
    });
  });
  return settling;
};
