/** The server's code for the error, if it came from there. The system has codes of five letters too: `EPIPE`. */
export function sqlState(error: unknown): string | null {
  if (typeof error !== "object" || error === null || !("code" in error) || "syscall" in error) return null;
  return typeof error.code === "string" && /^[0-9A-Z]{5}$/.test(error.code) ? error.code : null;
}

/** Libraries wrap what their driver threw, each in its own way, and may have codes of their own: the innermost is the server's. */
export function wrappedState(error: unknown): string | null {
  let innermost: string | null = null;
  const layers: unknown[] = [error];
  for (const layer of layers) {
    if (typeof layer !== "object" || layer === null || layers.length > 20) continue;
    try {
      const { cause, driverError, meta, driverAdapterError, originalCode } = layer as Layer;
      innermost = sqlState({ code: originalCode }) ?? sqlState(layer) ?? innermost;
      layers.push(cause, driverError, meta, driverAdapterError);
    } catch {
      // What throws at a look did not come from the server.
    }
  }
  return innermost;
}

const passing = /^(?:08|53|57|58)/;

/** Whether the server says that it cannot answer now: it shuts down, is out of something, or was told to give up. */
export function isPassing(error: unknown): boolean {
  return passing.test(wrappedState(error) ?? "");
}

interface Layer {
  readonly cause?: unknown;
  readonly driverError?: unknown;
  readonly meta?: unknown;
  readonly driverAdapterError?: unknown;
  readonly originalCode?: unknown;
}
