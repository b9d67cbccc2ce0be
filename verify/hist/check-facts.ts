import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { endStatuses } from "../../packages/pawl/src/core/run-status.ts";
import type {
  SnapshotEvent,
  SnapshotPayload,
  SnapshotRun,
  StoreSnapshot,
} from "../../packages/pawl/src/store/snapshot.ts";
import type { ClientEntry, RecordedFact, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** The store's last snapshot, with what belongs to a run found by its id. */
export interface FinalState {
  readonly snapshot: StoreSnapshot;
  readonly runs: ReadonlyMap<RunId, SnapshotRun>;
  readonly events: ReadonlyMap<RunId, readonly SnapshotEvent[]>;
}

export function indexSnapshot(snapshot: StoreSnapshot): FinalState {
  const events = new Map<RunId, SnapshotEvent[]>();
  for (const event of snapshot.events) {
    const list = events.get(event.runId);
    if (list === undefined) events.set(event.runId, [event]);
    else list.push(event);
  }
  return { snapshot, runs: new Map(snapshot.runs.map((run) => [run.id, run])), events };
}

function isSameJson(text: string | null, payload: SnapshotPayload | null): boolean {
  if (text === null || payload === null) return text === null && payload === null;
  const stored = JSON.stringify(payload.value);
  return text === stored || JSON.stringify(JSON.parse(text)) === stored;
}

/** I4: histories only grow at their end; seq is dense from 1; a run that has ended has one terminal event, the last. */
export function checkHistories(final: FinalState, report: Report): void {
  const isTerminal = (event: SnapshotEvent): boolean =>
    (endStatuses as readonly string[]).includes(event.kind);
  const rooms = [...final.snapshot.ready, ...final.snapshot.parked];
  for (const room of rooms) {
    const count = final.events.get(room.runId)?.length ?? 0;
    if (room.lastSeq !== count) report("I4", `a room says ${room.lastSeq} events, there are ${count}`, room);
  }
  for (const run of final.runs.values()) {
    const events = final.events.get(run.id) ?? [];
    for (const [index, event] of events.entries()) {
      if (event.seq !== index + 1) report("I4", `seq ${event.seq} where ${index + 1} belongs`, event);
    }
    const terminals = events.filter(isTerminal);
    const last = events.at(-1);
    if (run.status === null) {
      if (terminals.length > 0) report("I7", "a terminal event in a run that lives", run, ...terminals);
    } else if (terminals.length !== 1 || terminals[0] !== last || last?.kind !== run.status) {
      report("I7", `not one last event that says ${run.status}`, run, ...terminals, last);
    }
  }
}

/** I4 and I7, entry by entry: what was accepted or read is what the history holds in the end; a run ends once. */
export function createFactCheck(final: FinalState, report: Report): (entry: StoreEntry) => void {
  const endedBy = new Map<RunId, StoreEntry>();

  const compare = (
    entry: StoreEntry & { run: RunId },
    facts: readonly RecordedFact[],
    what: string,
  ): void => {
    const events = final.events.get(entry.run);
    for (const fact of facts) {
      const event = events?.[fact.seq - 1];
      if (event?.kind !== fact.kind || event.name !== fact.name || !isSameJson(fact.data, event.data)) {
        report(
          "I4",
          `${what} at seq ${fact.seq}, which the history does not hold`,
          fact,
          event ?? null,
          entry,
        );
        return;
      }
    }
  };

  const checkEnd = (entry: StoreEntry & { op: "end" | "ended" }): void => {
    const run = final.runs.get(entry.run);
    const result = run?.error ?? run?.output ?? null;
    if (run?.status !== entry.status || !isSameJson(entry.result, result ?? { value: null })) {
      report("I7", "an end that is not how the run ended", entry, run ?? null);
    }
  };

  return (entry) => {
    if (entry.type === "fail") return;
    switch (entry.op) {
      case "record":
      case "park":
        return compare(entry, entry.facts, "a fact was accepted");
      case "load":
        return compare(entry, entry.facts, "a fact was read");
      case "end": {
        compare(entry, entry.facts, "a fact was accepted");
        checkEnd(entry);
        const earlier = endedBy.get(entry.run);
        if (earlier !== undefined) report("I7", "a run ended twice", earlier, entry);
        endedBy.set(entry.run, entry);
        return;
      }
      case "ended":
        return checkEnd(entry);
      case "register":
      case "heartbeat":
      case "retire":
      case "sweep":
      case "create":
      case "claim":
      case "begin":
      case "inbox":
      case "release":
      case "tell":
      case "leak":
        return;
      default:
        entry satisfies never;
    }
  };
}

/** What a caller was told of a run's end. */
export interface SeenEnd {
  readonly status: string;
  readonly output: unknown;
}

/** I7: everybody who waits for a run gets the same answer, which is how it ended. */
export function createResultCheck(final: FinalState, report: Report): (entry: ClientEntry) => void {
  return (entry) => {
    if (entry.op !== "result" || entry.type !== "ok" || entry.run === null) return;
    const run = final.runs.get(entry.run);
    const { status, output } = entry.value as SeenEnd;
    const isSame =
      run?.status === status && JSON.stringify(output) === JSON.stringify(run.output?.value ?? null);
    if (!isSame) report("I7", "a waiter got another answer than how the run ended", entry, run ?? null);
  };
}

/** I2: children exist exactly as their parent's history says that they were started. */
export function checkChildren(final: FinalState, report: Report): void {
  const unexplained = new Map<RunId, SnapshotRun>();
  for (const run of final.runs.values()) if (run.parentId !== null) unexplained.set(run.id, run);
  for (const event of final.snapshot.events) {
    if (event.kind !== "child_started") continue;
    const id = (event.data?.value as { readonly id?: RunId } | undefined)?.id ?? "";
    const child = unexplained.get(id);
    unexplained.delete(id);
    if (child?.parentId !== event.runId || child.parentRequest !== event.name) {
      report("I2", "a child was recorded that does not exist", event, child ?? null);
    }
  }
  for (const orphan of unexplained.values()) report("I2", "a child that no record speaks of", orphan);
}
