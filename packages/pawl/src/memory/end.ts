import { knownSeq, type Ending, type Lease } from "../store/lease.ts";
import { closeRun } from "./close-run.ts";
import { continueRun } from "./continue.ts";
import { heldRun } from "./fence.ts";
import { write } from "./record.ts";
import { giveBack } from "./rooms.ts";
import type { Run, State } from "./state.ts";
import { wake } from "./wake.ts";

export function end(state: State, ending: Ending): void {
  const { run } = heldRun(state, ending.lease, knownSeq(ending));
  write(state, run, withLastFact(run, ending));
  const next = ending.next === undefined ? [] : [continueRun(state, run, ending.next)];
  wake(state, [...closeRun(state, run, ending), ...next]);
}

/** The fact that says how it ended is its last, also where an earlier write of its holder has the number which that was given. */
function withLastFact(run: Run, ending: Ending): Ending {
  const last = ending.events.at(-1);
  if (last === undefined || run.newestSeq < last.seq) return ending;
  return { ...ending, events: [...ending.events.slice(0, -1), { ...last, seq: run.newestSeq + 1 }] };
}

export function release(state: State, lease: Lease, readyAt?: number): void {
  const { run, room } = heldRun(state, lease);
  giveBack(state, run, room, readyAt);
}
