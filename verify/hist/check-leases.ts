import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

interface Holder {
  readonly claim: StoreEntry & { op: "claim" };
  /** How it let go: by itself, or because its worker did not know of it. */
  leftBy: StoreEntry | null;
}

interface WorkerLife {
  heard: StoreEntry;
  /** Longer than its own while it rests. */
  leaseMs: number;
  readonly ownLeaseMs: number;
  endedBy: StoreEntry | null;
}

/**
 * I5: no write is accepted under an epoch that has passed, and a refused one changes nothing.
 * I6: one holder at a time, by the store's clock; nobody else claims a run before its holder lets go or expires.
 */
export function createLeaseCheck(report: Report): (entry: StoreEntry) => void {
  const holders = new Map<RunId, Holder>();
  const workers = new Map<string, WorkerLife>();

  const checkClaim = (entry: StoreEntry & { op: "claim" }): void => {
    const last = holders.get(entry.run);
    const lastEpoch = last?.claim.epoch ?? 0;
    if (entry.epoch !== lastEpoch + 1) {
      report("I5", `a claim took epoch ${entry.epoch} after epoch ${lastEpoch}`, last?.claim, entry);
    }
    const claimer = workers.get(entry.process);
    if (claimer === undefined) report("I6", "a claim by a worker that was never registered", entry);
    else if (claimer.endedBy !== null)
      report("I6", "a claim by a worker that has ended", claimer.endedBy, entry);
    else if (claimer.leaseMs > claimer.ownLeaseMs) wake(claimer, entry);
    if (last !== undefined && last.leftBy === null) {
      const life = workers.get(last.claim.process);
      if (life?.endedBy === null)
        report("I6", "a claim of a run that is held", last.claim, life.heard, entry);
    }
    holders.set(entry.run, { claim: entry, leftBy: null });
  };

  /** The claim itself is the sign of life of a worker that rested. */
  const wake = (life: WorkerLife, entry: StoreEntry): void => {
    if (isExpired(life, entry.at)) report("I6", "a claim revived an expired worker", life.heard, entry);
    life.heard = entry;
    life.leaseMs = life.ownLeaseMs;
  };

  const checkWrite = (entry: StoreEntry & { run: RunId; epoch: number }, leaves: boolean): void => {
    if (entry.type === "fail") return;
    const holder = holders.get(entry.run);
    if (
      holder === undefined ||
      holder.claim.epoch !== entry.epoch ||
      holder.claim.process !== entry.process
    ) {
      report("I5", `an accepted ${entry.op} by somebody who is not the holder`, holder?.claim, entry);
      return;
    }
    if (holder.leftBy !== null) {
      report("I5", `an accepted ${entry.op} by a holder that had let go`, holder.claim, holder.leftBy, entry);
    }
    if (leaves) holder.leftBy = entry;
  };

  const isExpired = (life: WorkerLife, at: number): boolean => life.heard.at + life.leaseMs <= at;

  const checkHeartbeat = (entry: StoreEntry & { op: "heartbeat" }): void => {
    const life = workers.get(entry.process);
    if (!entry.isAlive || life === undefined) return;
    if (life.endedBy !== null || isExpired(life, entry.at)) {
      report("I6", "a heartbeat revived an expired worker", life.heard, life.endedBy, entry);
    }
    life.heard = entry;
    life.leaseMs = entry.leaseMs ?? life.leaseMs;
    const known = new Set(entry.held.map(({ run, epoch }) => `${run} ${epoch}`));
    for (const [run, holder] of holders) {
      if (holder.claim.process !== entry.process || holder.leftBy !== null) continue;
      const isOldEnough = holder.claim.at <= (entry.claimsKnownTo ?? Number.NEGATIVE_INFINITY);
      if (isOldEnough && !known.has(`${run} ${holder.claim.epoch}`)) holder.leftBy = entry;
      if (life.leaseMs > life.ownLeaseMs && life.endedBy === null)
        report("I6", "a worker rests that holds a run", holder.claim, entry);
    }
  };

  return (entry) => {
    switch (entry.op) {
      case "register":
        if (!workers.has(entry.process)) {
          const { leaseMs } = entry;
          workers.set(entry.process, { heard: entry, leaseMs, ownLeaseMs: leaseMs, endedBy: null });
        }
        return;
      case "heartbeat":
        return checkHeartbeat(entry);
      case "retire": {
        const life = workers.get(entry.worker);
        if (life !== undefined) life.endedBy ??= entry;
        return;
      }
      case "sweep":
        for (const [id, life] of workers)
          if ((entry.retired ?? id) === id && isExpired(life, entry.at)) life.endedBy ??= entry;
        return;
      case "claim":
        return checkClaim(entry);
      case "begin":
      case "inbox":
      case "record":
        return checkWrite(entry, false);
      case "park":
        return checkWrite(entry, entry.outcome === "parked");
      case "release":
      case "end":
        return checkWrite(entry, true);
      case "terminate": {
        const holder = holders.get(entry.run);
        if (holder !== undefined && entry.answer === "terminated") holder.leftBy ??= entry;
        return;
      }
      case "leak":
        return report(
          "I5",
          `a refused write changed something: ${entry.what}`,
          holders.get(entry.run)?.claim,
          entry,
        );
      case "create": {
        const life = workers.get(entry.holder ?? "");
        const rests = life !== undefined && life.endedBy === null && life.leaseMs > life.ownLeaseMs;
        if (rests && !isExpired(life, entry.at)) wake(life, entry);
        return;
      }
      case "fork":
      case "tell":
      case "load":
      case "ended":
      case "redrive":
      case "reschedule":
        return;
      default:
        entry satisfies never;
    }
  };
}
