import type { Entry } from "../hist/record.ts";
import { callFates, crashPoints, hintFates } from "./plan.ts";

/** Faults by kind, and how often each took effect. */
export type Tally = Map<string, number>;

/** Every kind that must land: a nemesis that never lands proves nothing. */
export const faultKinds: readonly string[] = [
  ...callFates.map((fate) => `call ${fate}`),
  ...hintFates.map((fate) => `hint ${fate}`),
  "kill",
  "stop",
  "pause longer than a lease",
  "pause shorter than a lease",
  ...crashPoints.flatMap((point) => [`crash at ${point}`, `pause at ${point}`]),
  "run taken from a dead worker",
  "lost claim given back",
  "write refused to a zombie",
];

/** What faults led to, where it counts: the windows that they must have hit. */
export function countEffects(tally: Tally, entries: readonly Entry[]): void {
  for (const entry of entries) {
    if (entry.by !== "store") continue;
    if (entry.op === "sweep") count(tally, "run taken from a dead worker", entry.recovered);
    else if (entry.op === "heartbeat") count(tally, "lost claim given back", entry.returned);
    else if (entry.type === "fail") count(tally, "write refused to a zombie");
  }
}

export function count(tally: Tally, kind: string, times = 1): void {
  tally.set(kind, (tally.get(kind) ?? 0) + times);
}
