import type { SnapshotRun, StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { ExpectedRun } from "../hist/check-outcomes.ts";
import { checkHistory } from "../hist/check.ts";
import type { EffectEntry, Entry, StoreEntry } from "../hist/record.ts";
import { Verdict, type Report, type Violation } from "../hist/verdict.ts";
import type { AuditLine } from "./audit.ts";
import type { Crowd } from "./crowd.ts";
import { ledgerEntries, storeEntries, type Claims, type Placed } from "./history.ts";
import type { LedgerLine } from "./side-car.ts";
import type { LogLine } from "./workforce.ts";

/** Everything that was read after the faults, when all had come to rest. */
export interface Evidence {
  readonly lines: readonly AuditLine[];
  readonly effects: readonly EffectEntry[];
  readonly snapshot: StoreSnapshot;
  readonly ledger: readonly LedgerLine[];
  readonly clientEntries: readonly Entry[];
  readonly claims: Claims;
  readonly toStoreTime: (at: number) => number;
  readonly expected: (run: SnapshotRun) => ExpectedRun | null;
  /** What became of runs that were started in a user's transaction. Null: nobody knows whether it committed. */
  readonly transactions: ReadonlyMap<string, boolean | null>;
  readonly crowd: Crowd;
  readonly logs: readonly LogLine[];
  readonly troubles: readonly string[];
  readonly sqlStates: ReadonlyMap<string, number>;
}

/** All invariants, over what the ledger, the callers and the database say. */
export function checkRound(evidence: Evidence): readonly Violation[] {
  const { lines, effects, snapshot, ledger, claims, toStoreTime, clientEntries, expected } = evidence;
  const verdict = new Verdict();
  const { report } = verdict;
  const store = storeEntries(lines, snapshot);
  checkSpoiled(lines, report);
  checkWriters(store, evidence, report);
  checkTransactions(evidence, report);
  evidence.crowd.check(snapshot, report);
  checkRest(evidence, report);
  checkProcesses(evidence, report);
  const observed = [...clientEntries, ...effects, ...ledgerEntries(ledger, claims, toStoreTime)];
  const placed: Placed[] = [...store, ...observed.map((entry) => ({ order: entry.at, entry }))];
  const entries = placed.toSorted((a, b) => a.order - b.order).map(({ entry }) => entry);
  return [...verdict.violations, ...checkHistory({ entries, snapshot, expected })];
}

/** I4, I7: nothing that was written down is changed. */
function checkSpoiled(lines: readonly AuditLine[], report: Report): void {
  for (const line of lines)
    if (line.what === "spoiled")
      report(line.detail?.["table"] === "run" ? "I7" : "I4", "what was written down was changed", line);
}

/**
 * I5: an outcome is recorded by the process that holds the run, which is the one that called the step; but what was committed in
 * another database is recorded by whoever finds it there.
 */
function checkWriters(
  store: readonly Placed<StoreEntry>[],
  { ledger, claims }: Evidence,
  report: Report,
): void {
  const callers = new Map<string, LedgerLine>();
  for (const line of ledger)
    if (line.kind === "call" && line.note.transaction !== "foreign") callers.set(line.token, line);
  for (const { entry } of store) {
    if (entry.op !== "record" && entry.op !== "park" && entry.op !== "end") continue;
    for (const { kind, data } of entry.facts) {
      if (kind !== "step_completed" && kind !== "step_failed") continue;
      const token = /"([^"\\]*#\d+)"/.exec(data ?? "")?.[1];
      const call = token === undefined ? undefined : callers.get(token);
      if (call !== undefined && call.pid !== claims.pidOf.get(entry.process))
        report("I5", "an outcome was accepted from a process that did not hold the run", call, entry);
    }
  }
}

/** I1, I2: a run that was started in a user's transaction is there exactly if that was committed. */
function checkTransactions({ transactions, snapshot }: Evidence, report: Report): void {
  const runs = new Map(snapshot.runs.map((run) => [run.key, run]));
  for (const [key, isCommitted] of transactions) {
    const run = runs.get(key);
    if (isCommitted !== null && (run !== undefined) !== isCommitted)
      report(
        "I1",
        `a start in a transaction that was ${isCommitted ? "committed" : "rolled back"}`,
        key,
        run ?? null,
      );
    if (run !== undefined && run.status !== "completed")
      report("I17", "a run that was started in a transaction has not completed", run);
  }
}

/** I18: nobody holds anything any more. */
function checkRest({ snapshot }: Evidence, report: Report): void {
  for (const lease of snapshot.lease) report("I18", "a run is still held when all workers have left", lease);
}

/** What a program says is no complaint of the engine's; whether it is as expected is looked at elsewhere. */
const ofPrograms = ["The run has failed.", "A step could not be undone."];

/** I19, I23: no process came to harm, said that something is wrong, or met a deadlock. */
function checkProcesses({ troubles, logs, sqlStates }: Evidence, report: Report): void {
  for (const trouble of troubles) report("I19", "a process came to harm", trouble);
  for (const log of logs) {
    if (log.message.includes("should have woken")) report("I23", "the sweep had to wake a run", log);
    else if (ofPrograms.includes(log.message)) continue;
    else if (log.level === "error" || log.message.includes("Please report"))
      report("I19", "a process complains", log);
  }
  const deadlocks = sqlStates.get("40P01") ?? 0;
  if (deadlocks > 0) report("I19", `${deadlocks} deadlocks among the engine's own statements`);
}
