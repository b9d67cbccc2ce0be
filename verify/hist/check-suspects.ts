import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

type Claim = StoreEntry & { op: "claim" };

interface Held {
  readonly claim: Claim;
  /** The worker has shown that the claim's answer reached it: one that did not know of a run cannot have heeded it. */
  isKnown: boolean;
}

/** So many leases long, at least, a worker that has a suspect takes nothing else, and waits for what it has before it takes one. */
const leasesAlone = 4;

/**
 * I16: a run that was held by workers that died is tried by a worker that holds nothing else, but what it has waited for in
 * vain, and takes nothing else for a while: if it kills again, it is found out, and kills no neighbour.
 */
export function createSuspectCheck(report: Report): (entry: StoreEntry) => void {
  const leaseMs = new Map<string, number>();
  const heldBy = new Map<string, Map<RunId, Held>>();
  const holders = new Map<RunId, string>();

  const leave = (run: RunId): void => {
    heldBy.get(holders.get(run) ?? "")?.delete(run);
    holders.delete(run);
  };

  const leaveAll = (worker: string): void => {
    for (const run of heldBy.get(worker)?.keys() ?? []) holders.delete(run);
    heldBy.delete(worker);
  };

  const claim = (entry: Claim): void => {
    leave(entry.run);
    holders.set(entry.run, entry.process);
    const held = heldBy.get(entry.process) ?? new Map<RunId, Held>();
    heldBy.set(entry.process, held.set(entry.run, { claim: entry, isKnown: false }));
  };

  const show = ({ run, epoch, process }: { run: RunId; epoch: number; process: string }): void => {
    const shown = heldBy.get(process)?.get(run);
    if (shown === undefined || shown.isKnown || shown.claim.epoch !== epoch) return;
    shown.isKnown = true;
    for (const other of heldBy.get(process)?.values() ?? []) {
      if (other === shown || !other.isKnown) continue;
      const [first, second] = shown.claim.at < other.claim.at ? [shown, other] : [other, shown];
      judge(first.claim, second.claim);
    }
  };

  const judge = (first: Claim, second: Claim): void => {
    // The worker counts the time by its own clock, and both clocks count whole milliseconds.
    if (second.at + 1 >= first.at + leasesAlone * (leaseMs.get(first.process) ?? 0)) return;
    if (second.isSuspect === true)
      report("I16", "a suspect was claimed by a worker that held something else", first, second);
    else if (first.isSuspect === true)
      report("I16", "a worker that had a suspect claimed something else", first, second);
  };

  const write = (entry: StoreEntry & { run: RunId; epoch: number }): void => {
    const hasLeft =
      entry.type === "fail" ||
      entry.op === "end" ||
      entry.op === "release" ||
      (entry.op === "park" && entry.outcome === "parked");
    const isOwn = entry.op !== "record" || entry.isWithClaim !== true;
    if (entry.type === "ok" && isOwn) show(entry);
    if (hasLeft && holders.get(entry.run) === entry.process) leave(entry.run);
  };

  return (entry) => {
    if (entry.op === "register") leaseMs.set(entry.process, entry.leaseMs);
    else if (entry.op === "claim") claim(entry);
    else if (entry.op === "heartbeat" && !entry.isAlive) leaveAll(entry.process);
    else if (entry.op === "retire") leaveAll(entry.worker);
    else if (entry.op === "terminate") leave(entry.run);
    else if ("epoch" in entry && entry.op !== "leak") write(entry);
  };
}
