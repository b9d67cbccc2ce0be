/** Lets everything that is ready to continue do so: promises, then I/O that has already come in. */
export function systemSettle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
