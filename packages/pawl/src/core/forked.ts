import type { RunEvent } from "./event.ts";
import { leftOf, meaningOf } from "./fact.ts";
import type { Payload } from "./json.ts";

/** What the `forked` fact of a run says: whose history it began with, and what its code must find as it was there. */
export interface Fork {
  /** The run that was forked. */
  readonly from: string;
  /** The source's fact that the copy ends before. */
  readonly seq: number;
  /** When the code's time begins: that of the first run it was copied from. */
  readonly since: number;
  /** Whose random numbers the code draws until so many facts have been delivered; after the last of them, its own. */
  readonly seeds: readonly Seed[];
  /** Keys of the children that the fork starts anew: what it has of their starts is where they stood. */
  readonly startedAnew?: readonly string[];
}

interface Seed {
  readonly runId: string;
  readonly until: number;
}

/** The fork that this run is; null if it is none, or was started anew since. */
export function forkOf(history: readonly RunEvent[]): Fork | null {
  const data = history.find(({ kind }) => kind === "forked")?.data ?? null;
  return data === null ? null : (JSON.parse(data.json) as Fork);
}

/** The history of a fork, in which those starts are vacant. */
export function withVacantStarts(history: readonly RunEvent[]): readonly RunEvent[] {
  const forked = history.find(({ kind }) => kind === "forked");
  const keys = forkOf(history)?.startedAnew ?? [];
  if (forked === undefined || keys.length === 0) return history;
  const isVacant = (event: RunEvent): boolean =>
    event.seq < forked.seq && meaningOf(event)?.family === "start" && keys.includes(event.name ?? "");
  return history.flatMap((event) => (isVacant(event) ? leftOf(event) : [event]));
}

/** Never sealed: it is the engine's own, and holds ids and numbers alone. */
export function describeFork(fork: Fork): Payload {
  return { json: JSON.stringify(fork), notes: null };
}

/** Whose random numbers are drawn once so many facts have been delivered. */
export function seedRunId(fork: Fork | null, runId: string, delivered: number): string {
  return fork?.seeds.find(({ until }) => delivered < until)?.runId ?? runId;
}
