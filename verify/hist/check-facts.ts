import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { endStatuses } from "../../packages/pawl/src/core/run-status.ts";
import type {
  SnapshotEvent,
  SnapshotPayload,
  SnapshotRun,
  StoreSnapshot,
} from "../../packages/pawl/src/store/snapshot.ts";
import type { Lives } from "./lives.ts";
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

/** The run at the end of the chain that this one is in. */
function chainEndOf(final: FinalState, id: RunId): SnapshotRun | undefined {
  const run = final.runs.get(id);
  return run === undefined || run.continuedAs === null ? run : chainEndOf(final, run.continuedAs);
}

/** This run and all that go on from it. */
function chainFrom(final: FinalState, id: RunId): readonly RunId[] {
  const next = final.runs.get(id)?.continuedAs ?? null;
  return next === null ? [id] : [id, ...chainFrom(final, next)];
}

/** A history, cut where another life begins: each life but the first begins with `redriven`. */
export function livesOf(events: readonly SnapshotEvent[]): readonly (readonly SnapshotEvent[])[] {
  const lives: SnapshotEvent[][] = [[]];
  for (const event of events) {
    if (event.kind === "redriven") lives.push([]);
    lives.at(-1)?.push(event);
  }
  return lives;
}

export function isTerminal(event: SnapshotEvent): boolean {
  return (endStatuses as readonly string[]).includes(event.kind);
}

/**
 * I4: histories only grow at their end; seq is dense from 1. I7: a life that is over has one terminal event, its last; what
 * has completed does not live again.
 */
export function checkHistories(final: FinalState, report: Report): void {
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
    const lives = livesOf(events);
    for (const [index, life] of lives.slice(0, -1).entries())
      checkPastLife(life, lives[index + 1]?.[0], run, report);
    checkPresentLife(lives.at(-1) ?? [], run, report);
  }
}

/** Whether with this fact a run began anew: what it had done does not count any more. */
export function isBeginning({ kind, data }: SnapshotEvent): boolean {
  return kind === "redriven" && data !== null;
}

function checkPastLife(
  life: readonly SnapshotEvent[],
  next: SnapshotEvent | undefined,
  run: SnapshotRun,
  report: Report,
): void {
  const terminals = life.filter(isTerminal);
  // A redrive writes down how children ended that could not tell.
  const last = life.findLast(({ kind }) => kind !== "child_ended");
  const mayNot = last?.kind === "completed" && (next === undefined || !isBeginning(next));
  if (terminals.length !== 1 || terminals[0] !== last || mayNot)
    report("I7", "a run lives again after a life without one end", run, ...terminals, last);
}

function checkPresentLife(life: readonly SnapshotEvent[], run: SnapshotRun, report: Report): void {
  const terminals = life.filter(isTerminal);
  const last = life.at(-1);
  if (run.status === null) {
    if (terminals.length > 0) report("I7", "a terminal event in a run that lives", run, ...terminals);
  } else if (terminals.length !== 1 || terminals[0] !== last || last?.kind !== run.status) {
    report("I7", `not one last event that says ${run.status}`, run, ...terminals, last);
  }
}

/** It says that a COMMIT was not carried out, unless what that was to record is there: a step, behind the patches that came with it. */
function hasCommitted({ seq, name }: RecordedFact, events: readonly SnapshotEvent[] | undefined): boolean {
  const first = events?.slice(seq - 1).find(({ kind }) => kind !== "patched");
  return first?.kind === "step_completed" && first.name === name;
}

/**
 * I4 and I7, entry by entry: what was accepted or read is what the history holds in the end; a run ends once in each of its
 * lives, and lives again as often as it was redriven.
 */
export function createFactCheck(
  final: FinalState,
  lives: Lives,
  report: Report,
): { readonly see: (entry: StoreEntry) => void; readonly conclude: () => void } {
  const endedBy = new Map<string, StoreEntry>();
  const endsOf = new Map<RunId, readonly (SnapshotEvent | undefined)[]>();

  const compare = (
    entry: StoreEntry & { run: RunId },
    facts: readonly RecordedFact[],
    what: string,
  ): void => {
    const events = final.events.get(entry.run);
    for (const fact of facts) {
      const event = events?.[fact.seq - 1];
      if (fact.kind === "commit_lost" && hasCommitted(fact, events)) continue;
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

  /** How the life ended that the run is in now. */
  const endOf = (run: RunId): SnapshotEvent | undefined => {
    let ends = endsOf.get(run);
    if (ends === undefined) {
      ends = livesOf(final.events.get(run) ?? []).map((life) => life.find(isTerminal));
      endsOf.set(run, ends);
    }
    return ends[lives.redrivesOf(run)];
  };

  const checkEnd = (entry: StoreEntry & { op: "end" | "ended" }): void => {
    const run = final.runs.get(entry.run);
    const end = endOf(entry.run);
    if (end?.kind !== entry.status)
      return report("I7", "an end that is not in the history", entry, end ?? null);
    const id = `${entry.run} ${lives.redrivesOf(entry.run)}`;
    const earlier = endedBy.get(id);
    if (earlier === undefined) endedBy.set(id, entry);
    else if (entry.op === "end") report("I7", "a run ended twice in one life", earlier, entry);
    else if ("result" in earlier && earlier.result !== entry.result)
      report("I7", "two ends of one life", earlier, entry);
    // Of a past life nothing but its history is left.
    if (end !== final.events.get(entry.run)?.at(-1)) return;
    const result = run?.error ?? run?.output ?? null;
    if (run?.status !== entry.status || !isSameJson(entry.result, result ?? { value: null })) {
      report("I7", "an end that is not how the run ended", entry, run ?? null);
    }
  };

  const see = (entry: StoreEntry): void => {
    if (entry.type === "fail") return;
    switch (entry.op) {
      case "record":
      case "park":
        return compare(entry, entry.facts, "a fact was accepted");
      case "fork":
        return compare(entry, entry.facts, "a fact was copied");
      case "load":
        return compare(entry, entry.facts, "a fact was read");
      case "end":
        compare(entry, entry.facts, "a fact was accepted");
        return checkEnd(entry);
      case "ended":
        return checkEnd(entry);
      case "terminate":
        if (entry.answer === "terminated" && endOf(entry.run)?.kind !== "cancelled")
          report("I1", "a terminated run is not cancelled", entry, endOf(entry.run) ?? null);
        return;
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
      case "redrive":
      case "reschedule":
      case "leak":
        return;
      default:
        entry satisfies never;
    }
  };

  return {
    see,
    conclude() {
      for (const run of final.runs.values()) {
        const redriven = (final.events.get(run.id) ?? []).filter(({ kind }) => kind === "redriven");
        const times = lives.redrivesOf(run.id);
        if (redriven.length !== times) report("I1", `a run redriven ${times} times`, run, ...redriven);
      }
    },
  };
}

/** What a caller was told of a run's end. */
export interface SeenEnd {
  readonly status: string;
  readonly output: unknown;
}

/** I7: everybody who waits for a run gets the same answer: how one of the lives ended that it was in meanwhile. */
export function createResultCheck(
  final: FinalState,
  lives: Lives,
  report: Report,
): (entry: ClientEntry) => void {
  /** Of each run of the chain. */
  const redrivesAtAsking = new Map<number, readonly number[]>();
  return (entry) => {
    if (entry.op !== "result" || entry.run === null) return;
    const run = chainEndOf(final, entry.run);
    const chain = chainFrom(final, entry.run);
    if (entry.type === "invoke")
      redrivesAtAsking.set(
        entry.call,
        chain.map((id) => lives.redrivesOf(id)),
      );
    if (entry.type !== "ok") return;
    const { status, output } = entry.value as SeenEnd;
    const asked = redrivesAtAsking.get(entry.call) ?? [];
    // One that went on as another has told nobody that it was over.
    const ends = chain.flatMap((id, index) =>
      livesOf(final.events.get(id) ?? [])
        .slice(asked[index] ?? 0, lives.redrivesOf(id) + 1)
        .map((life) => life.find(isTerminal)?.kind)
        .filter((kind) => kind !== "completed" || id === run?.id),
    );
    // Of an earlier life nobody knows the output any more.
    const isAnew = chain.some((id) => (final.events.get(id) ?? []).some(isBeginning));
    const isSame =
      (ends as readonly string[]).includes(status) &&
      (isAnew ||
        status !== "completed" ||
        JSON.stringify(output) === JSON.stringify(run?.output?.value ?? null));
    if (!isSame) report("I7", "a waiter got another answer than how the run ended", entry, run ?? null);
  };
}

/** I8: a child that lost a race is asked to stop. */
export function checkWithdrawn(final: FinalState, report: Report): void {
  const asked = new Set(
    final.snapshot.inbox.filter(({ topic }) => topic === "cancel").map(({ runId }) => runId),
  );
  const check = (event: SnapshotEvent, id: RunId): void => {
    const child = chainEndOf(final, id);
    const isOver = child !== undefined && child.endedAt !== null && child.endedAt <= event.at;
    // One that was redriven, whether its parent was or not, goes on all the same: it is what the operator wanted.
    const isExcused = (run: RunId): boolean =>
      asked.has(run) || (final.events.get(run) ?? []).some(({ kind }) => kind === "redriven");
    if (!isOver && !chainFrom(final, id).some(isExcused))
      report("I8", "a child that lost a race was not asked to stop", event, child ?? null);
  };
  for (const [runId, events] of final.events) {
    // What is caught may leave other children behind.
    const mayForget = JSON.stringify(final.runs.get(runId)?.input).includes('"kind":"try"');
    const children = new Map<string | null, RunId>();
    const alone = new Set<RunId>();
    for (const event of events) {
      const {
        id,
        family,
        alone: isAlone,
      } = (event.data?.value ?? {}) as {
        readonly id?: RunId;
        readonly family?: string;
        readonly alone?: boolean;
      };
      if (event.kind === "child_started" && id !== undefined) children.set(event.name, id);
      // Whoever was started alone goes on when its parent completes.
      if (id !== undefined && isAlone === true) alone.add(id);
      if (event.kind === "child_ended") children.delete(event.name);
      const loser = children.get(event.name);
      if (event.kind === "withdrawn" && family === "child" && loser !== undefined) check(event, loser);
      if (event.kind !== "completed" || mayForget) continue;
      for (const [name, left] of children)
        if (name?.startsWith("race/") === true && !alone.has(left)) check(event, left);
    }
  }
}

/** I2: children exist exactly as their parent's history says that they were started. */
export function checkChildren(final: FinalState, report: Report): void {
  const unexplained = new Map<RunId, SnapshotRun>();
  const goingOn = new Set([...final.runs.values()].map(({ continuedAs }) => continuedAs));
  for (const run of final.runs.values())
    if (run.parentId !== null && !goingOn.has(run.id)) unexplained.set(run.id, run);
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
