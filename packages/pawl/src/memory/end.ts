import type { Ending, Lease } from "../store/lease.ts";
import { closeRun } from "./close-run.ts";
import { continueRun } from "./continue.ts";
import { heldRun } from "./fence.ts";
import { write } from "./record.ts";
import { giveBack } from "./rooms.ts";
import type { State } from "./state.ts";
import { wake } from "./wake.ts";

export function end(state: State, ending: Ending): void {
  const { run } = heldRun(state, ending.lease);
  write(state, run, ending);
  const next = ending.next === undefined ? [] : [continueRun(state, run, ending.next)];
  wake(state, [...closeRun(state, run, ending), ...next]);
}

export function release(state: State, lease: Lease): void {
  const { run, room } = heldRun(state, lease);
  giveBack(state, run, room);
}
