import type { AuditLine } from "./audit.ts";
import type { Claims } from "./history.ts";
import type { Restart } from "./nemesis.ts";
import type { Deed } from "./workforce.ts";

/** A worker's hold on a run. */
interface Tenure {
  readonly run: string;
  readonly worker: string;
  readonly pid: number;
  readonly claimedAt: number;
  leftAt: number;
  /** Which transition ended it. */
  leftBy: string;
  /** When somebody had it next. */
  nextAt: number;
  nextPid: number | null;
}

interface Deeds {
  readonly deeds: readonly Deed[];
  readonly restarts: readonly Restart[];
  readonly losses: readonly { readonly pid: number; readonly at: number }[];
  readonly toStoreTime: (at: number) => number;
}

export interface Effective {
  readonly kills: number;
  readonly zombies: number;
  readonly restartsInTakeOver: number;
}

function tenuresOf(lines: readonly AuditLine[], { pidOf }: Claims): readonly Tenure[] {
  const all: Tenure[] = [];
  const current = new Map<string, Tenure>();
  for (const { what, run, worker, at, op } of lines) {
    if (run === null) continue;
    const last = current.get(run);
    if (what === "left" && last !== undefined) Object.assign(last, { leftAt: at, leftBy: op });
    if (what !== "claimed" || worker === null) continue;
    const pid = pidOf.get(worker) ?? 0;
    if (last !== undefined) Object.assign(last, { nextAt: at, nextPid: pid });
    const never = Number.POSITIVE_INFINITY;
    const tenure: Tenure = {
      run,
      worker,
      pid,
      claimedAt: at,
      leftAt: never,
      leftBy: "",
      nextAt: never,
      nextPid: null,
    };
    current.set(run, tenure);
    all.push(tenure);
  }
  return all;
}

/**
 * Of all that was done, what took effect. A kill: the process held runs that a sweep had to take from it. A zombie: its runs
 * were swept and claimed by another while it was stopped, and it found out when it came back. A restart in take-over: it fell
 * between the end of a dead worker's lease and the next claim of a run that it had held.
 */
export function countEffective(
  lines: readonly AuditLine[],
  claims: Claims,
  { deeds, restarts, losses, toStoreTime }: Deeds,
): Effective {
  const byPid = new Map<number, Tenure[]>();
  for (const tenure of tenuresOf(lines, claims))
    byPid.set(tenure.pid, [...(byPid.get(tenure.pid) ?? []), tenure]);
  const swept = (pid: number): readonly Tenure[] =>
    (byPid.get(pid) ?? []).filter(({ leftBy }) => leftBy === "sweep");
  const expiry = new Map<string, number>();
  for (const { what, worker, detail } of lines)
    if (worker !== null && (what === "registered" || what === "heard"))
      expiry.set(worker, Number(detail?.["heardAt"]) + Number(detail?.["leaseMs"]));

  const isKill = ({ pid, at }: Deed): boolean =>
    swept(pid).some(({ claimedAt, leftAt }) => claimedAt <= toStoreTime(at) && leftAt > toStoreTime(at));
  const isZombie = (deed: Deed & { kind: "freeze" }): boolean => {
    const [from, until] = [toStoreTime(deed.at), toStoreTime(deed.until)];
    const wasTaken = swept(deed.pid).some(
      ({ claimedAt, leftAt, nextAt, nextPid }) =>
        claimedAt <= from && leftAt > from && nextAt < until && nextPid !== deed.pid,
    );
    const isBack = losses.some(({ pid, at }) => pid === deed.pid && at >= deed.until);
    return wasTaken && isBack;
  };
  const isTakeOver = ({ pid, at: downAt }: Restart): boolean => {
    const at = toStoreTime(downAt);
    return swept(pid).some(
      ({ worker, nextAt }) => (expiry.get(worker) ?? Number.POSITIVE_INFINITY) <= at && nextAt > at,
    );
  };
  return {
    kills: deeds.filter((deed) => deed.kind === "kill" && isKill(deed)).length,
    zombies: deeds.filter((deed) => deed.kind === "freeze" && isZombie(deed)).length,
    restartsInTakeOver: restarts.filter(isTakeOver).length,
  };
}
