import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { SnapshotMessage } from "../../packages/pawl/src/store/snapshot.ts";
import { isTerminal, livesOf, type FinalState } from "./check-facts.ts";
import type { Lives } from "./lives.ts";
import type { ClientEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

export interface MessageCheck {
  client(entry: ClientEntry): void;
  store(entry: StoreEntry): void;
}

function takersOf(topic: string): readonly string[] {
  if (topic.startsWith("signal:")) return ["signal_received"];
  // One that its schema refuses is answered at once.
  if (topic.startsWith("update:")) return ["update_received", "update_answered"];
  if (topic === "child") return ["child_ended"];
  return [topic === "cancel" ? "cancel_requested" : "resumed"];
}

/**
 * I10: a signal that was accepted is there once per idempotency key, is taken once, oldest first, and none is accepted by a
 * run that has ended. I8: whoever ends otherwise than by completing asks its children to stop, in each of its lives. I1 for signals and cancels: what was acknowledged is there.
 */
export function createMessageCheck(final: FinalState, lives: Lives, report: Report): MessageCheck {
  const byRun = new Map<RunId, SnapshotMessage[]>();
  for (const message of final.snapshot.inbox)
    byRun.set(message.runId, [...(byRun.get(message.runId) ?? []), message]);
  for (const messages of byRun.values()) checkInbox(messages, final, report);

  const ends = new Map<RunId, StoreEntry>();
  const accepted = new Set<string>();

  /** Those of the run, and of all that go on from it. */
  const messagesOfChain = (run: RunId): readonly SnapshotMessage[] => {
    const next = final.runs.get(run)?.continuedAs ?? null;
    const own = byRun.get(run) ?? [];
    return next === null ? own : [...own, ...messagesOfChain(next)];
  };

  const checkTell = (entry: StoreEntry & { op: "tell" }): void => {
    const messages = byRun.get(entry.run) ?? [];
    const message = messages.find(({ id }) => id === entry.message);
    if (entry.answer === "accepted" && message === undefined) {
      report("I1", "an accepted message is not in the inbox", entry);
    }
    const end = ends.get(entry.run);
    // One that is repeated was accepted before the end; its place is taken by another when the parent of a redriven run stops it.
    const isRepeated = accepted.has(entry.message);
    if (entry.answer === "accepted") accepted.add(entry.message);
    if (
      end !== undefined &&
      !isRepeated &&
      entry.answer === "accepted" &&
      message !== undefined &&
      message.sentAt > end.at
    ) {
      report("I10", "a message was accepted by a run that had ended", end, entry);
    }
  };

  /** Whether nobody need ask the run to stop any more: its present life had ended by then, or it was asked in it. */
  const isAsked = (run: RunId, at: number): boolean => {
    const life = livesOf(final.events.get(run) ?? [])[lives.redrivesOf(run)];
    const first = life?.[0];
    // What a child told its parent after that end is taken by the redrive, and stands behind it.
    const end = life?.findLast(isTerminal);
    // Within one ms nobody can tell.
    if (end !== undefined && end.at <= at) return true;
    const bornAt = first?.kind === "redriven" ? first.at : 0;
    return (byRun.get(run) ?? []).some(({ topic, sentAt }) => topic === "cancel" && sentAt >= bornAt);
  };

  const checkChildrenAsked = (parent: RunId, entry: StoreEntry): void => {
    for (const child of lives.childrenOf(parent)) {
      const messages = byRun.get(child) ?? [];
      if (!isAsked(child, entry.at))
        report(
          "I8",
          "a child was not asked to stop when its parent was",
          entry,
          final.runs.get(child),
          ...messages,
        );
    }
  };

  return {
    client(entry) {
      if (entry.type !== "ok" || entry.run === null) return;
      const messages = byRun.get(entry.run) ?? [];
      if (entry.op === "signal" || entry.op === "signalOrStart") {
        const key = entry.op === "signal" ? entry.key : entry.value;
        const isThere = messagesOfChain(final.runs.get(entry.run)?.firstId ?? entry.run).some(
          ({ idempotencyKey }) => idempotencyKey === key,
        );
        if (!isThere) report("I1", "an acknowledged signal is not in the inbox", entry);
      }
      if (entry.op === "cancel" || entry.op === "terminate") {
        const run = final.runs.get(entry.run);
        const isThere =
          messages.some(({ topic }) => topic === "cancel") ||
          (run !== undefined && run.status !== null) ||
          final.events.get(entry.run)?.some(({ kind }) => kind === "redriven");
        if (isThere !== true) report("I1", `an acknowledged ${entry.op} left no trace`, entry);
      }
    },
    store(entry) {
      // What a parent's end asks of a child is told by nobody else, until it is repeated.
      if ("facts" in entry && entry.type === "ok")
        for (const { takes } of entry.facts) if (takes !== null) accepted.add(takes);
      if (entry.op === "tell") checkTell(entry);
      else if (entry.op === "end" && entry.type === "ok") {
        ends.set(entry.run, entry);
        if (entry.status !== "completed") checkChildrenAsked(entry.run, entry);
      } else if (entry.op === "terminate" && entry.answer === "terminated") {
        ends.set(entry.run, entry);
        checkChildrenAsked(entry.run, entry);
      } else if (entry.op === "redrive")
        for (const [run, answer] of entry.answers) if (answer === "redriven") ends.delete(run);
    },
  };
}

/** The messages on one topic, up to an instant: of that one, and of all before it, the message that was taken last. */
interface Line {
  readonly at: number;
  readonly last: SnapshotMessage;
  readonly earlier: SnapshotMessage | null;
}

/** Of two that were sent in one instant nobody knows which came first: their ids tell only how a look orders them. */
function queueUp(line: Line | undefined, message: SnapshotMessage): Line {
  if (line === undefined) return { at: message.sentAt, last: message, earlier: null };
  if (line.at === message.sentAt) return { ...line, last: takenLater(line.last, message) };
  const earlier = line.earlier === null ? line.last : takenLater(line.earlier, line.last);
  return { at: message.sentAt, last: message, earlier };
}

function takenLater(a: SnapshotMessage, b: SnapshotMessage): SnapshotMessage {
  return placeOf(a) > placeOf(b) ? a : b;
}

function placeOf({ takenSeq }: SnapshotMessage): number {
  return takenSeq ?? Number.POSITIVE_INFINITY;
}

function checkInbox(messages: readonly SnapshotMessage[], final: FinalState, report: Report): void {
  const keys = new Map<string, SnapshotMessage>();
  const taken = new Map<number, SnapshotMessage>();
  const lines = new Map<string, Line>();
  const inOrder = messages.toSorted((a, b) => a.sentAt - b.sentAt || (a.id < b.id ? -1 : 1));
  for (const message of inOrder) {
    if (message.idempotencyKey !== null) {
      const twin = keys.get(message.idempotencyKey);
      if (twin !== undefined) report("I10", "two messages with one idempotency key", twin, message);
      keys.set(message.idempotencyKey, message);
    }
    if (message.takenSeq !== null && message.takenSeq > 0) {
      const event = final.events.get(message.runId)?.[message.takenSeq - 1];
      if (event === undefined || !takersOf(message.topic).includes(event.kind))
        report("I10", "a message taken by no fact of its kind", message, event);
      const rival = taken.get(message.takenSeq);
      if (rival !== undefined) report("I10", "one fact took two messages", rival, message);
      taken.set(message.takenSeq, message);
    }
    // Number 0: another run has it, which goes on from this one.
    if (!/^(?:signal|update):/.test(message.topic) || message.takenSeq === 0) continue;
    const line = queueUp(lines.get(message.topic), message);
    lines.set(message.topic, line);
    if (line.earlier !== null && placeOf(line.earlier) > placeOf(message))
      report("I10", "a signal was taken before one sent earlier", line.earlier, message);
  }
  const runId = messages[0]?.runId ?? "";
  for (const event of final.events.get(runId) ?? []) {
    if (event.kind === "signal_received" && !taken.has(event.seq)) {
      report("I10", "a signal was received that no message brought", event);
    }
  }
}
