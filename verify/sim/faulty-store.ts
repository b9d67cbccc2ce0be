import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { Recorder } from "../hist/record.ts";
import type { CallHarm } from "../points/script.ts";
import { callFates, hintFates, type CallFate, type Plan } from "./plan.ts";
import type { Rng } from "./rng.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** What a process's way to the store is like. */
export interface StoreLink {
  readonly world: World;
  readonly process: SimProcess;
  readonly recorder: Recorder;
  readonly rng: Rng;
  readonly plan: Plan;
  /** No fault happens after this instant, nor lasts beyond it. */
  readonly healAtMs: number;
  /** Counts a fault that took effect. */
  readonly landed: (kind: string) => void;
  /** What is to go wrong with this call, beside what chance says. */
  readonly scripted: (call: string) => CallHarm | null;
  readonly crash: () => void;
  /** For longer than a lease. */
  readonly pause: () => void;
}

type Reject = (error: Error) => void;

const healedLatencyMs = 1;

function unavailable(): PawlError {
  return new PawlError("STORE_UNAVAILABLE", "The connection was lost.");
}

/** Sends a call that suffers what the script says, and nothing else. */
export function suffer<T>(
  { world, process, crash, pause }: StoreLink,
  harm: CallHarm,
  apply: () => Promise<T>,
  send: (fate: "dropped" | "unanswered" | "fine", apply: () => Promise<T>) => void,
): void {
  switch (harm) {
    case "dropped":
    case "unanswered":
      return send(harm, apply);
    // Not in the middle of its code: it may just be starting.
    case "crash before":
      world.after(0, crash);
      return;
    case "crash after":
      return send("fine", () => apply().finally(crash));
    case "pause before":
      world.after(0, pause);
      world.after(0, () => process.pass("call", () => send("fine", apply)));
      return;
    case "pause after":
      world.after(0, pause);
      return send("fine", apply);
    default:
      harm satisfies never;
  }
}

/** The store as one process reaches it: every call takes time, and any may be lost, held up, or applied without an answer. */
export function createFaultyStore(store: Store, link: StoreLink): Store {
  const { world, process, recorder, rng, plan, healAtMs } = link;

  const draw = <Fate extends string>(
    fates: readonly Fate[],
    rates: Readonly<Record<Fate, number>>,
  ): Fate | "fine" => {
    if (world.nowMs >= healAtMs) return "fine";
    let left = rng.next();
    for (const fate of fates) {
      if (left < rates[fate]) return fate;
      left -= rates[fate];
    }
    return "fine";
  };

  const drawLatencyMs = (): number =>
    rng.between(0.05, world.nowMs < healAtMs ? plan.latencyMs : healedLatencyMs);
  const drawLongMs = (): number => Math.max(0, Math.min(rng.between(0, plan.longMs), healAtMs - world.nowMs));

  const send = <T>(
    fate: CallFate | "fine",
    apply: () => Promise<T>,
    resolve: (value: T) => void,
    reject: Reject,
  ): void => {
    const thereMs = drawLatencyMs() + (fate === "delayed" ? drawLongMs() : 0);
    const backMs = drawLatencyMs() + (fate === "heldUp" ? drawLongMs() : 0);
    const answer = (ms: number, act: () => void): void => {
      world.convey(ms, () => process.pass("answer", act));
    };
    const fail = (): void => reject(unavailable());
    if (fate === "dropped" || fate === "overtaken") answer(thereMs + backMs, fail);
    if (fate === "dropped") return;
    world.convey(fate === "overtaken" ? thereMs + backMs + drawLongMs() : thereMs, () => {
      apply().then(
        (value) => answer(backMs, () => (fate === "unanswered" ? fail() : resolve(value))),
        (error: unknown) => answer(backMs, () => (fate === "unanswered" ? fail() : reject(error as Error))),
      );
    });
  };

  /** A process that is paused in the middle of its code sends its calls when it goes on; a dead one sends none. */
  const call = <T>(name: string, apply: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      process.pass("call", () => {
        const scripted = world.nowMs < healAtMs ? link.scripted(name) : null;
        if (scripted !== null)
          return suffer(link, scripted, apply, (fate, changed) => send(fate, changed, resolve, reject));
        const fate = draw(callFates, plan.calls);
        recorder.note(() => `${process.name} ${name} ${fate}`);
        if (fate !== "fine") link.landed(`call ${fate}`);
        send(fate, apply, resolve, reject);
      });
    });

  const subscribe: Store["subscribe"] = (listener) => {
    let isOn = true;
    const stop = store.subscribe((hint) => {
      const fate = draw(hintFates, plan.hints);
      if (fate !== "fine") link.landed(`hint ${fate}`);
      const deliver = (ms: number): void => {
        world.convey(ms, () => process.pass("hint", () => (isOn ? listener(hint) : undefined)));
      };
      if (fate !== "lost") deliver(drawLatencyMs() + (fate === "late" ? drawLongMs() : 0));
      if (fate === "twice") deliver(drawLatencyMs() + drawLongMs());
    });
    return () => {
      isOn = false;
      stop();
    };
  };

  return {
    now: () => call("now", () => store.now()),
    upMs: () => call("upMs", () => store.upMs()),
    createRuns: (runs) => call("createRuns", () => store.createRuns(runs)),
    createHeld: (run, holder) => call("createHeld", () => store.createHeld(run, holder)),
    claimRuns: (request) => call("claimRuns", () => store.claimRuns(request)),
    begin: (lease) => call("begin", () => store.begin(lease)),
    record: (recording) => call("record", () => store.record(recording)),
    readInbox: (look) => call("readInbox", () => store.readInbox(look)),
    park: (parking) => call("park", () => store.park(parking)),
    end: (ending) => call("end", () => store.end(ending)),
    release: (lease) => call("release", () => store.release(lease)),
    tell: (message) => call("tell", () => store.tell(message)),
    wakeTold: (runIds) => call("wakeTold", () => store.wakeTold(runIds)),
    wakeDue: (limit, holder) => call("wakeDue", () => store.wakeDue(limit, holder)),
    registerWorker: (worker) => call("registerWorker", () => store.registerWorker(worker)),
    heartbeat: (heartbeat) => call("heartbeat", () => store.heartbeat(heartbeat)),
    retireWorker: (workerId) => call("retireWorker", () => store.retireWorker(workerId)),
    sweep: (request) => call("sweep", () => store.sweep(request)),
    getRun: (runId) => call("getRun", () => store.getRun(runId)),
    getEnds: (runIds) => call("getEnds", () => store.getEnds(runIds)),
    terminate: (runId, data) => call("terminate", () => store.terminate(runId, data)),
    redrive: (runIds, terms) => call("redrive", () => store.redrive(runIds, terms)),
    fork: (run, history) => call("fork", () => store.fork(run, history)),
    signalOrStart: (asked) => call("signalOrStart", () => store.signalOrStart(asked)),
    reschedule: (rescheduling) => call("reschedule", () => store.reschedule(rescheduling)),
    findKey: (key) => call("findKey", () => store.findKey(key)),
    countRuns: (most) => call("countRuns", () => store.countRuns(most)),
    readBacklog: (most) => call("readBacklog", () => store.readBacklog(most)),
    listChildren: (runId, after, limit) =>
      call("listChildren", () => store.listChildren(runId, after, limit)),
    listAttempts: (runId) => call("listAttempts", () => store.listAttempts(runId)),
    listPatches: (workflow, version) => call("listPatches", () => store.listPatches(workflow, version)),
    listRuns: (filter) => call("listRuns", () => store.listRuns(filter)),
    loadHistory: (...terms) => call("loadHistory", () => store.loadHistory(...terms)),
    readPublished: (runId, key) => call("readPublished", () => store.readPublished(runId, key)),
    getAnswers: (questions) => call("getAnswers", () => store.getAnswers(questions)),
    readStream: (place, limit) => call("readStream", () => store.readStream(place, limit)),
    findWritten: (places) => call("findWritten", () => store.findWritten(places)),
    lastPositions: (runId, names) => call("lastPositions", () => store.lastPositions(runId, names)),
    listWorkers: (filter) => call("listWorkers", () => store.listWorkers(filter)),
    subscribe,
  };
}
