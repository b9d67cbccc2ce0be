import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { StoreEntry } from "./record.ts";

interface RunLife {
  /** How often it was redriven. */
  redrives: number;
  /** What asks it to stop in its present life: a cancel, a terminate, or its parent's end. */
  stop: StoreEntry | null;
  readonly children: RunId[];
}

/** In which of its lives each run is, and whether it is asked to stop there: as far as the entries that it has seen tell. */
export interface Lives {
  see(entry: StoreEntry): void;
  redrivesOf(run: RunId): number;
  stopOf(run: RunId): StoreEntry | null;
  childrenOf(run: RunId): readonly RunId[];
}

export function createLives(): Lives {
  const lives = new Map<RunId, RunLife>();
  const sent = new Set<string>();

  const lifeOf = (run: RunId): RunLife => {
    let life = lives.get(run);
    if (life === undefined) lives.set(run, (life = { redrives: 0, stop: null, children: [] }));
    return life;
  };

  const stopChildren = (run: RunId, entry: StoreEntry): void => {
    for (const child of lifeOf(run).children) lifeOf(child).stop ??= entry;
  };

  /** What was asked of the run, and of nobody else, is asked of the one that takes its place. */
  const goOn = (run: RunId, next: RunId): void => {
    if (lives.has(next)) return;
    lifeOf(next).stop = lifeOf(run).stop;
    for (const { children } of lives.values()) if (children.includes(run)) children.push(next);
  };

  return {
    see(entry) {
      if (entry.type === "fail") return;
      if (entry.op === "create") {
        if (entry.parent !== null && !lives.has(entry.run)) lifeOf(entry.parent).children.push(entry.run);
        lifeOf(entry.run);
      } else if (entry.op === "tell") {
        if (entry.answer !== "accepted" || sent.has(entry.message)) return;
        // From here on it is a repetition, and belongs to the life in which it came first.
        sent.add(entry.message);
        if (entry.topic === "cancel") lifeOf(entry.run).stop ??= entry;
      } else if (entry.op === "terminate") {
        if (entry.answer !== "terminated") return;
        lifeOf(entry.run).stop ??= entry;
        stopChildren(entry.run, entry);
      } else if (entry.op === "end") {
        if (entry.status !== "completed") stopChildren(entry.run, entry);
        if (entry.next !== undefined && entry.next !== null) goOn(entry.run, entry.next);
      } else if (entry.op === "redrive") {
        for (const [run, answer] of entry.answers) {
          if (answer !== "redriven") continue;
          lifeOf(run).redrives += 1;
          lifeOf(run).stop = null;
        }
      }
    },
    redrivesOf: (run) => lives.get(run)?.redrives ?? 0,
    stopOf: (run) => lives.get(run)?.stop ?? null,
    childrenOf: (run) => lives.get(run)?.children ?? [],
  };
}
