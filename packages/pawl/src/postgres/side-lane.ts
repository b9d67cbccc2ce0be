import { isBlocked } from "./sql-error.ts";

interface SideLaneOptions<Entry> {
  /** Carries out all of these in one call. Answers null once each has been told, or the error that one of them caused. */
  attempt(entries: readonly Entry[]): Promise<unknown>;
  giveUp(entry: Entry, error: unknown): void;
  /** How long an item that others block is tried again. */
  readonly blockedForMs: number;
  pause(ms: number): Promise<void>;
}

interface Blocked<Entry> {
  readonly entry: Entry;
  readonly leftMs: number;
}

/** Together with the calls in flight they leave a pool of ten some connections. */
const partsAtOnce = 4;
const blockedAtOnce = 2;
const pauseMs = 50;
/** As the functions of the schema set it. */
const lockTimeoutMs = 250;

/**
 * Tries again what made a call fail, in smaller parts, beside the calls that go on meanwhile: first about as many parts as
 * each holds items, then the items of a part that fails again, alone. So an item has others to wait for twice at most,
 * and one bad item of 400 costs 40 calls, not 400. What is found blocked when alone waits in a line of its own.
 */
export function createSideLane<Entry>(options: SideLaneOptions<Entry>): (batch: readonly Entry[]) => void {
  const parts: (readonly Entry[])[] = [];
  const blocked: Blocked<Entry>[] = [];
  let partsOut = 0;
  let blockedOut = 0;

  function pump(): void {
    while (partsOut < partsAtOnce) {
      const part = parts.shift();
      if (part === undefined) break;
      partsOut++;
      void tryPart(part).finally(() => {
        partsOut--;
        pump();
      });
    }
    while (blockedOut < blockedAtOnce) {
      const next = blocked.shift();
      if (next === undefined) break;
      blockedOut++;
      void tryBlocked(next).finally(() => {
        blockedOut--;
        pump();
      });
    }
  }

  async function tryPart(part: readonly Entry[]): Promise<void> {
    const error = await options.attempt(part);
    if (error === null) return;
    const [entry] = part;
    if (entry === undefined || part.length > 1) parts.push(...split(part));
    else if (isBlocked(error)) blocked.push({ entry, leftMs: options.blockedForMs - lockTimeoutMs });
    else options.giveUp(entry, error);
  }

  async function tryBlocked({ entry, leftMs }: Blocked<Entry>): Promise<void> {
    await options.pause(pauseMs);
    const error = await options.attempt([entry]);
    if (error === null) return;
    // Each blocked try has itself waited for the lock's time limit.
    if (isBlocked(error) && leftMs > 0) blocked.push({ entry, leftMs: leftMs - pauseMs - lockTimeoutMs });
    else options.giveUp(entry, error);
  }

  return (batch) => {
    parts.push(...split(batch));
    pump();
  };
}

/** Below this, parts are single items. */
const smallPart = 32;

function split<Entry>(batch: readonly Entry[]): readonly (readonly Entry[])[] {
  const size = batch.length > smallPart ? Math.ceil(Math.sqrt(batch.length)) : 1;
  const parts: (readonly Entry[])[] = [];
  for (let start = 0; start < batch.length; start += size) parts.push(batch.slice(start, start + size));
  return parts;
}
