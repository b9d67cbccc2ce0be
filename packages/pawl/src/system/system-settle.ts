/** Taken once: one that a test put in its place, and took away again, would never call back those who wait. */
const immediate = setImmediate;
let settling: Promise<void> | null = null;

/** Lets everything that is ready to continue do so: promises, then I/O that has already come in. All who ask in one turn share it. */
export function systemSettle(): Promise<void> {
  settling ??= new Promise((resolve) => {
    immediate(() => {
      settling = null;
      resolve();
    });
  });
  return settling;
}
