import type { EventKind } from "../../packages/pawl/src/core/event.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { endStatuses } from "../../packages/pawl/src/core/run-status.ts";
import { shortWaitMs } from "../../packages/pawl/src/runtime/steps.ts";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import { databases, updateKinds, walk, type Program } from "../gen/program.ts";
import type { SeenAnswer } from "../hist/check-updates.ts";
import type { ClientEntry, Entry, StepEntry, StoreEntry, UndoEntry } from "../hist/record.ts";
import { commitFates } from "./faulty-transactions.ts";
import { callFates, crashPoints, hintFates } from "./plan.ts";

/** Faults and operations by kind, and how often each took effect. */
export type Tally = Map<string, number>;

/** Every kind that must land: a nemesis that never lands proves nothing. */
export const faultKinds: readonly string[] = [
  ...callFates.map((fate) => `call ${fate}`),
  ...hintFates.map((fate) => `hint ${fate}`),
  ...commitFates.map((fate) => `COMMIT ${fate}`),
  "connection lost in a transaction",
  "kill",
  "stop",
  "pause longer than a lease",
  "pause shorter than a lease",
  ...crashPoints.flatMap((point) => [`crash at ${point}`, `pause at ${point}`]),
  "deploy",
  "run taken from a dead worker",
  "lost claim given back",
  "write refused to a zombie",
];

const wentOn = "parked run went on in memory";

/** Of these, what few schedules show: a fault between two undos, and a run on the new side of a patch that old code takes. */
export const rareKinds: readonly string[] = [
  ...["undo.before", "undo.after"].flatMap((point) => [`crash at ${point}`, `pause at ${point}`]),
  "run blocked by old code",
  "blocked run that went on",
];

/** Everything that callers must have done, or brought about: what never happened was never checked. */
export const operationKinds: readonly string[] = [
  "start of several",
  "start of several, all withheld",
  "start that its own worker held at once",
  "start with a delay",
  "start with an expiry",
  "start with a deadline",
  "start of a run that must be new, refused",
  "terminate of a run that nobody holds",
  "terminate of a held run",
  "redrive of one",
  "redrive of several",
  ...["cancelled", "expired", "failed", "timed_out"].map(
    (status) => `redrive of a run that ${endedAs(status)}`,
  ),
  "redrive of a child",
  "redrive from the start",
  "redrive of a run that was completed",
  "reschedule: priority",
  "reschedule: later",
  "reschedule: now",
  "reschedule too late",
  "pause",
  "resume",
  "run that paused itself",
  "run expired",
  "run timed out before it began",
  "run timed out later",
  "claim in another life",
  wentOn,
  "write refused to a holder from an earlier life",
  "step tried again at once",
  "step tried again by a parked run",
  "undo",
  "undo tried again",
  "undo that failed",
  "undo in doubt",
  "undo of a run that failed",
  "undo of a run that was cancelled",
  "undo of a run that timed out",
  "undo taken over",
  "run that went on as another",
  "request that lost a race",
  ...databases.map((database) => `transaction: ${database}`),
  ...updateKinds.map((kind) => `update ${kind}`),
  "update of a run that ended first",
  "signalOrStart",
  "signalOrStart of a run that was there",
  "fork",
  "fork that kept a result",
  "cancelAll",
  "pauseAll",
  "resumeAll",
  "step that timed out",
  "step whose worker died",
  "child that timed out",
  "value published",
  "published value read",
  "item written to a stream",
  "stream read to its end",
  "map",
  "patch: the new side",
  "patch: the old side",
  "run blocked by old code",
  "blocked run that went on",
  "transaction tried again",
  "transaction whose COMMIT was lost",
];

function endedAs(status: string): string {
  return status === "timed_out"
    ? "timed out"
    : status === "failed" || status === "expired"
      ? status
      : `was ${status}`;
}

/** What faults and callers led to, where it counts: the windows that they must have hit. */
export function countEffects(tally: Tally, entries: readonly Entry[], snapshot: StoreSnapshot): void {
  const callers = new CallerTally(tally, snapshot);
  const undos = new UndoTally(tally);
  countFacts(tally, snapshot);
  countOperations(tally, snapshot);
  const tenures = new Set<string>();
  const calls = new Set<string>();
  const countAgain = ({ type, run, step, epoch, stepAttempt }: StepEntry): void => {
    if (type !== "invoke") return;
    const call = `${run} ${step} ${epoch} ${stepAttempt}`;
    if (calls.has(call)) count(tally, "transaction tried again");
    calls.add(call);
  };
  for (const entry of entries) {
    if (entry.by === "delivery") {
      const tenure = `${entry.run} ${entry.epoch}`;
      // Replay hands everything out again from the first result on.
      if (!tenures.has(tenure) && entry.index > 0) count(tally, wentOn);
      tenures.add(tenure);
    }
    if (entry.by === "client") countAsked(tally, entry);
    if (entry.by === "patch") count(tally, `patch: the ${entry.isNew ? "new" : "old"} side`);
    if (entry.by === "effect") count(tally, `transaction: ${entry.database}`);
    if (entry.by === "step" && entry.isTransactional === true) countAgain(entry);
    if (entry.by === "undo") undos.see(entry);
    if (entry.by !== "store") continue;
    callers.see(entry);
    if (entry.op === "sweep") count(tally, "run taken from a dead worker", entry.recovered);
    else if (entry.op === "claim" && entry.isFromStart === true)
      count(tally, "start that its own worker held at once");
    else if (entry.op === "heartbeat") count(tally, "lost claim given back", entry.returned);
    else if (entry.type === "fail") count(tally, "write refused to a zombie");
  }
}

function countAsked(tally: Tally, { type, op, value }: ClientEntry): void {
  if (type === "ok" && (op === "signalOrStart" || op.endsWith("All"))) count(tally, op);
  if (op === "update" && type === "ok") count(tally, `update ${(value as SeenAnswer).status}`);
  if (op === "update" && type === "fail") count(tally, "update of a run that ended first");
  if (op === "stream" && type === "ok" && (value as readonly unknown[]).length > 0)
    count(tally, "stream read to its end");
  if (op === "published" && type === "ok" && Object.keys(value as object).length > 0)
    count(tally, "published value read");
}

const kindOfFact: Readonly<Partial<Record<EventKind, string>>> = {
  undo_completed: "undo",
  undo_retried: "undo tried again",
  undo_failed: "undo that failed",
  published: "value published",
  stream_written: "item written to a stream",
  continued: "run that went on as another",
  withdrawn: "request that lost a race",
  blocked: "run blocked by old code",
  commit_lost: "transaction whose COMMIT was lost",
};

function countFacts(tally: Tally, { events }: StoreSnapshot): void {
  const blocked = new Set<RunId>();
  for (const { runId, kind, name, at, dueAt, data } of events) {
    if (kind === "paused" && name !== null) count(tally, "run that paused itself");
    if (kind === "step_completed" && blocked.delete(runId)) count(tally, "blocked run that went on");
    if (kind === "blocked") blocked.add(runId);
    if (kind === "step_failed" || kind === "step_retried") {
      const { code } = (data?.value ?? {}) as { readonly code?: string };
      if (code === "STEP_TIMED_OUT") count(tally, "step that timed out");
      if (code === "STEP_CRASHED") count(tally, "step whose worker died");
    }
    const counted = kindOfFact[kind];
    if (counted !== undefined) count(tally, counted);
    if (kind === "step_retried") {
      const isLong = (dueAt ?? 0) - at > shortWaitMs;
      count(tally, isLong ? "step tried again by a parked run" : "step tried again at once");
    }
    if (kind === "undo_began") {
      const fate = data?.value as { readonly status: string } | undefined;
      count(tally, `undo of a run that ${endedAs(fate?.status ?? "")}`);
    }
  }
}

/** Those that leave no facts of their own, in runs that came to their end. */
function countOperations(tally: Tally, { runs }: StoreSnapshot): void {
  for (const { status, input, parentId } of runs) {
    if (status === "timed_out" && parentId !== null) count(tally, "child that timed out");
    if (status !== "completed") continue;
    for (const { kind } of walk((input?.value as Program | undefined)?.ops ?? [], false))
      if (kind === "map") count(tally, kind);
  }
}

class UndoTally {
  readonly #tally: Tally;
  readonly #epochs = new Map<string, number>();

  constructor(tally: Tally) {
    this.#tally = tally;
  }

  see({ type, run, key, epoch, inDoubt }: UndoEntry): void {
    if (type !== "invoke") return;
    if (inDoubt) count(this.#tally, "undo in doubt");
    const id = `${run} ${key}`;
    if ((this.#epochs.get(id) ?? epoch) !== epoch) count(this.#tally, "undo taken over");
    this.#epochs.set(id, epoch);
  }
}

/** What callers did, by what the store answered. */
class CallerTally {
  readonly #tally: Tally;
  readonly #children: ReadonlySet<RunId>;
  /** How each life of a run ended, but for its last if it lives. */
  readonly #ends = new Map<RunId, string[]>();
  /** How often each run was redriven so far, and the last epoch before. */
  readonly #redriven = new Map<RunId, { times: number; readonly epoch: number }>();
  readonly #epochs = new Map<RunId, number>();
  readonly #calls = new Map<number, number>();
  readonly #greeted = new Set<RunId>();

  constructor(tally: Tally, { runs, events }: StoreSnapshot) {
    this.#tally = tally;
    this.#children = new Set(runs.filter(({ parentId }) => parentId !== null).map(({ id }) => id));
    for (const { runId, kind, beganAt } of events) {
      if (!(endStatuses as readonly string[]).includes(kind)) continue;
      this.#ends.set(runId, [...(this.#ends.get(runId) ?? []), kind]);
      if (kind === "expired") this.#count("run expired");
      if (kind === "timed_out")
        this.#count(beganAt === null ? "run timed out before it began" : "run timed out later");
    }
  }

  see(entry: StoreEntry): void {
    if (entry.type === "fail") return this.#seeRefusal(entry);
    if (entry.op === "create") return this.#seeCreate(entry);
    if (entry.op === "fork") {
      this.#count("fork");
      if (entry.facts.some(({ kind }) => kind === "step_completed")) this.#count("fork that kept a result");
    }
    if (entry.op === "redrive") {
      if (entry.isFresh === true && entry.answers.some(([, answer]) => answer === "redriven"))
        this.#count("redrive from the start");
      return this.#seeRedrive(entry.answers);
    }
    if (entry.op === "reschedule") return this.#seeReschedule(entry);
    if (entry.op === "terminate") {
      if (entry.answer === "terminated")
        this.#count(entry.wasHeld ? "terminate of a held run" : "terminate of a run that nobody holds");
    } else if (entry.op === "tell") {
      if (entry.key?.endsWith("hello:0") === true && this.#greeted.has(entry.run))
        this.#count("signalOrStart of a run that was there");
      if (entry.key?.endsWith("hello:0") === true) this.#greeted.add(entry.run);
      if (entry.answer === "accepted" && (entry.topic === "pause" || entry.topic === "resume"))
        this.#count(entry.topic);
    } else if (entry.op === "claim") {
      this.#epochs.set(entry.run, entry.epoch);
      if (this.#redriven.has(entry.run)) this.#count("claim in another life");
    }
  }

  #seeRefusal(entry: StoreEntry): void {
    if ("epoch" in entry && entry.epoch <= (this.#redriven.get(entry.run)?.epoch ?? 0))
      this.#count("write refused to a holder from an earlier life");
  }

  #seeReschedule({ answer, priority, startAt }: StoreEntry & { op: "reschedule" }): void {
    if (answer === "begun") this.#count("reschedule too late");
    if (answer !== "rescheduled") return;
    if (priority !== undefined) this.#count("reschedule: priority");
    if (startAt === null) this.#count("reschedule: now");
    else if (startAt !== undefined) this.#count("reschedule: later");
  }

  #seeCreate(entry: StoreEntry & { op: "create" }): void {
    const ofCall = (this.#calls.get(entry.call) ?? 0) + 1;
    this.#calls.set(entry.call, ofCall);
    if (ofCall === 2 && entry.answer === "created") this.#count("start of several");
    if (entry.answer === "withheld") this.#count("start of several, all withheld");
    if (entry.answer === "conflict" && entry.mustBeNew)
      this.#count("start of a run that must be new, refused");
    if (entry.answer !== "created" || entry.parent !== null) return;
    if (entry.startAt !== null) this.#count("start with a delay");
    if (entry.expiresAt !== null) this.#count("start with an expiry");
    if (entry.deadlineAt !== null) this.#count("start with a deadline");
  }

  #seeRedrive(answers: readonly (readonly [RunId, string])[]): void {
    const redriven = answers.filter(([, answer]) => answer === "redriven");
    if (redriven.length > 0) this.#count(redriven.length === 1 ? "redrive of one" : "redrive of several");
    for (const [run] of redriven) {
      const times = this.#redriven.get(run)?.times ?? 0;
      this.#redriven.set(run, { times: times + 1, epoch: this.#epochs.get(run) ?? 0 });
      this.#count(`redrive of a run that ${endedAs(this.#ends.get(run)?.[times] ?? "")}`);
      if (this.#children.has(run)) this.#count("redrive of a child");
    }
  }

  #count(kind: string): void {
    count(this.#tally, kind);
  }
}

export function count(tally: Tally, kind: string, times = 1): void {
  tally.set(kind, (tally.get(kind) ?? 0) + times);
}
