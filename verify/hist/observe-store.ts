import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { RunEvent } from "../../packages/pawl/src/core/event.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Payload } from "../../packages/pawl/src/core/json.ts";
import type { ClaimedRun, Lease, NewEvent } from "../../packages/pawl/src/store/lease.ts";
import type { CreateAnswer, ForkedEvent, NewRun, RunEnd } from "../../packages/pawl/src/store/run-record.ts";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { RecordedFact, Recorder, StoreOperation } from "./record.ts";

export interface StoreObserver {
  readonly recorder: Recorder;
  /** The newest epoch under which each run was claimed, shared by all who observe one store. */
  readonly epochs: Map<string, number>;
  readonly snapshot: () => StoreSnapshot;
  /** How it is with a run, without a snapshot of everything. */
  readonly look: (run: RunId) => { readonly isHeld: boolean; readonly isDeaf: boolean };
  /** Called with every run that came to be. */
  readonly created: (run: NewRun) => void;
  /** Called with every run that lives again. */
  readonly redriven: (run: RunId) => void;
  /** Called with every run that is claimed, and the epoch it is claimed under. */
  readonly claimed: (runId: RunId, epoch: number) => void;
}

/** A result in one line, the same for equal results. */
function resultOf(end: { readonly output: Payload | null; readonly error: Payload | null }): string {
  return end.error?.json ?? end.output?.json ?? "null";
}

function factOf(event: NewEvent | ForkedEvent | RunEvent): RecordedFact {
  const { seq, kind, name, data, dueAt } = event;
  const takes = "takes" in event ? event.takes : null;
  return { seq, kind, name, data: data?.json ?? null, takes: takes ?? null, dueAt: dueAt ?? null };
}

/** The store, with every transition written down at the moment it is applied. A worker is called by its worker id. */
export function observeStore(store: Store, process: string, observer: StoreObserver): Store {
  const { recorder, epochs } = observer;

  const note = (type: "ok" | "fail", operation: StoreOperation, who = process): void => {
    recorder.add({ by: "store", at: recorder.now, process: who, type, ...operation });
  };

  /** Notes a write by a holder, refused or not. A write under an old epoch must change nothing, so it is watched. */
  const fenced = async <T>(
    lease: Lease,
    apply: () => Promise<T>,
    describe: (answer: T | null) => StoreOperation,
  ): Promise<T> => {
    const isOld = lease.epoch < (epochs.get(lease.runId) ?? 0);
    const before = isOld ? JSON.stringify(observer.snapshot()) : null;
    try {
      const answer = await apply();
      note("ok", describe(answer), lease.workerId);
      return answer;
    } catch (error) {
      if (!PawlError.is(error, "LEASE_LOST")) throw error;
      note("fail", describe(null), lease.workerId);
      if (before !== null && JSON.stringify(observer.snapshot()) !== before) {
        const { runId: run, epoch } = lease;
        note("fail", { op: "leak", run, epoch, what: "the store's content differs" }, lease.workerId);
      }
      throw error;
    }
  };

  const noteEnd = (run: string, end: RunEnd): void => {
    note("ok", { op: "ended", run, status: end.status, result: resultOf(end) });
  };

  const noteCreate = (
    call: number,
    run: NewRun,
    { id, kind: answer }: CreateAnswer,
    more: { readonly holder?: string } = {},
  ): void => {
    const { id: wanted, key, mustBeNew, startAt, expiresAt, deadlineAt } = run;
    const parent = run.parent?.id ?? null;
    const times = { startAt, expiresAt, deadlineAt };
    note("ok", { op: "create", run: id, wanted, call, key, mustBeNew, parent, answer, ...times, ...more });
  };

  const noteClaim = (
    { runId, epoch, failures }: ClaimedRun,
    workerId: string,
    how: { readonly isSuspect: boolean } | { readonly isFromStart: true },
  ): void => {
    epochs.set(runId, Math.max(epoch, epochs.get(runId) ?? 0));
    note("ok", { op: "claim", run: runId, epoch, failures, ...how }, workerId);
    observer.claimed(runId, epoch);
  };

  const createdChildren = (children: readonly NewRun[]): void => {
    for (const child of children) {
      noteCreate(recorder.entries.length, child, { id: child.id, kind: "created" });
      observer.created(child);
    }
  };

  return {
    now: () => store.now(),
    upMs: () => store.upMs(),
    async createRuns(runs) {
      const answers = await store.createRuns(runs);
      const call = recorder.entries.length;
      for (const [index, answer] of answers.entries()) {
        const run = runs[index];
        if (run === undefined) continue;
        noteCreate(call, run, answer);
        if (answer.kind === "created") observer.created(run);
      }
      return answers;
    },
    async createHeld(run, holder) {
      const answer = await store.createHeld(run, holder);
      noteCreate(recorder.entries.length, run, answer, { holder: holder.workerId });
      if (answer.kind === "created") observer.created(run);
      // A repeated call is answered again.
      if (answer.held !== null && !epochs.has(answer.id))
        noteClaim(answer.held, holder.workerId, { isFromStart: true });
      return answer;
    },
    async claimRuns(request) {
      const claim = await store.claimRuns(request);
      for (const run of claim.runs) noteClaim(run, request.workerId, { isSuspect: request.suspects });
      return claim;
    },
    begin: (lease) =>
      fenced(
        lease,
        () => store.begin(lease),
        () => ({ op: "begin", run: lease.runId, epoch: lease.epoch }),
      ),
    readInbox: ({ lease, look }) =>
      fenced(
        lease,
        () => store.readInbox({ lease, look }),
        () => ({ op: "inbox", run: lease.runId, epoch: lease.epoch }),
      ),
    release: (lease) =>
      fenced(
        lease,
        () => store.release(lease),
        () => ({ op: "release", run: lease.runId, epoch: lease.epoch }),
      ),
    async record(recording) {
      const { runId: run, epoch } = recording.lease;
      const facts = recording.events.map(factOf);
      const answer = await fenced(
        recording.lease,
        () => store.record(recording),
        () => ({ op: "record", run, epoch, facts }),
      );
      createdChildren(recording.children);
      return answer;
    },
    async park(parking) {
      const { runId: run, epoch } = parking.lease;
      const facts = parking.events.map(factOf);
      const answer = await fenced(
        parking.lease,
        () => store.park(parking),
        (answer) => {
          return { op: "park", run, epoch, facts, outcome: answer?.outcome ?? "refused" };
        },
      );
      createdChildren(parking.children);
      return answer;
    },
    async end(ending) {
      const { runId: run, epoch } = ending.lease;
      const facts = ending.events.map(factOf);
      const { status } = ending;
      await fenced(
        ending.lease,
        () => store.end(ending),
        () => {
          const next = ending.next?.id ?? null;
          return { op: "end", run, epoch, facts, status, result: resultOf(ending), next };
        },
      );
      createdChildren(ending.children);
    },
    async tell(message) {
      const answer = await store.tell(message);
      const { runId: run, id, topic, idempotencyKey: key } = message;
      note("ok", { op: "tell", run, message: id, topic, key, answer });
      return answer;
    },
    wakeTold: (runIds) => store.wakeTold(runIds),
    async wakeDue(limit, holder) {
      const answer = await store.wakeDue(limit, holder);
      const workerId = holder?.workerId ?? process;
      for (const run of answer.held) {
        noteClaim(run, workerId, { isSuspect: false });
        const { runId, epoch, fired, history } = run;
        if (fired !== undefined)
          note(
            "ok",
            { op: "record", run: runId, epoch, facts: [factOf(fired)], isWithClaim: true },
            workerId,
          );
        if (history !== undefined)
          note("ok", { op: "load", run: runId, facts: history.map(factOf) }, workerId);
      }
      return answer;
    },
    async registerWorker(worker) {
      await store.registerWorker(worker);
      note("ok", { op: "register", leaseMs: worker.leaseMs }, worker.id);
    },
    async heartbeat(heartbeat) {
      const answer = await store.heartbeat(heartbeat);
      const held = heartbeat.held.map(({ runId, epoch }) => ({ run: runId, epoch }));
      const { workerId, claimsKnownTo } = heartbeat;
      note(
        "ok",
        {
          op: "heartbeat",
          isAlive: answer.alive,
          leaseMs: answer.leaseMs,
          held,
          claimsKnownTo,
          returned: answer.returned,
        },
        workerId,
      );
      return answer;
    },
    async retireWorker(workerId) {
      await store.retireWorker(workerId);
      note("ok", { op: "retire", worker: workerId });
    },
    async sweep(request) {
      const answer = await store.sweep(request);
      const { recovered, rescued } = answer;
      note("ok", { op: "sweep", recovered, rescued });
      return answer;
    },
    async getRun(runId) {
      const run = await store.getRun(runId);
      if (run !== null && run.endedAt !== null) noteEnd(runId, run as RunEnd);
      return run;
    },
    async getEnds(runIds) {
      const ends = await store.getEnds(runIds);
      for (const [run, end] of ends) if (end !== null) noteEnd(run, end);
      return ends;
    },
    async terminate(run, data) {
      const wasHeld = observer.look(run).isHeld;
      const answer = await store.terminate(run, data);
      note("ok", { op: "terminate", run, wasHeld, answer });
      return answer;
    },
    async redrive(runIds, terms) {
      const answers = await store.redrive(runIds, terms);
      note("ok", { op: "redrive", answers: [...answers], isFresh: terms?.from === "start" });
      for (const [run, answer] of answers) if (answer === "redriven") observer.redriven(run);
      return answers;
    },
    async reschedule(rescheduling) {
      const answer = await store.reschedule(rescheduling);
      const { runId: run, priority, startAt } = rescheduling;
      const { isDeaf } = observer.look(run);
      note("ok", { op: "reschedule", run, priority, startAt, answer, isDeaf });
      return answer;
    },
    async signalOrStart(asked) {
      const answer = await store.signalOrStart(asked);
      const { kind, id: run, told } = answer;
      if (kind === "elsewhere") return answer;
      noteCreate(recorder.entries.length, asked.run, { id: run, kind: kind === "found" ? "existing" : kind });
      if (kind === "created") observer.created(asked.run);
      const { id, topic, idempotencyKey: key } = asked.message;
      if (told !== null) note("ok", { op: "tell", run, message: id, topic, key, answer: told });
      return answer;
    },
    async fork(run, history) {
      const answer = await store.fork(run, history);
      noteCreate(recorder.entries.length, run, answer);
      if (answer.kind !== "created") return answer;
      observer.created(run);
      const facts = history.map(factOf);
      note("ok", { op: "fork", run: run.id, epoch: 0, source: run.forkedFrom ?? "", facts });
      return answer;
    },
    listRuns: (filter) => store.listRuns(filter),
    findKey: (key) => store.findKey(key),
    countRuns: (most) => store.countRuns(most),
    readBacklog: (most) => store.readBacklog(most),
    listChildren: (runId, after, limit) => store.listChildren(runId, after, limit),
    listAttempts: (runId) => store.listAttempts(runId),
    listPatches: (workflow, version) => store.listPatches(workflow, version),
    async loadHistory(runId, afterSeq, lastSeq) {
      const events = await store.loadHistory(runId, afterSeq, lastSeq);
      const facts = events.map(factOf);
      note("ok", { op: "load", run: runId, facts });
      return events;
    },
    readPublished: (runId, key) => store.readPublished(runId, key),
    getAnswers: (questions) => store.getAnswers(questions),
    readStream: (place, limit) => store.readStream(place, limit),
    findWritten: (places) => store.findWritten(places),
    lastPositions: (runId, names) => store.lastPositions(runId, names),
    listWorkers: (filter) => store.listWorkers(filter),
    subscribe: (listener) => store.subscribe(listener),
  };
}
