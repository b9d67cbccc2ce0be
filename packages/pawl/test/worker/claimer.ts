import type { RunId } from "../../src/core/ids.ts";
import type { ClaimRequest, Lane } from "../../src/store/lease.ts";
import { plainRun, type NewRun } from "../../src/store/run-record.ts";
import type { Store } from "../../src/store/store.ts";
import { createClaimLoop, type ClaimLoop } from "../../src/worker/claim-loop.ts";
import { createRegistration, type Registration } from "../../src/worker/registration.ts";
import { createSlots, type HeldRun, type Slots } from "../../src/worker/slots.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

export const leaseMs = 15_000;

const lane: Lane = { queue: "default", workflow: "work", version: 1, after: null, crashLimit: 3 };
/** Where runs wait that are to become suspects; nothing else comes here. */
const crashingLane: Lane = { ...lane, queue: "crashing" };

/** A claim loop whose runs take as long as the test wants. */
export interface Claimer extends ManualWorld {
  readonly loop: ClaimLoop;
  readonly slots: Slots;
  readonly registration: Registration;
  readonly claims: readonly ClaimRequest[];
  readonly expired: readonly string[];
  /** How often it has said that it could take more than there was. */
  hungry(): number;
  start(run?: Partial<NewRun>): Promise<RunId>;
  startMany(count: number): Promise<void>;
  heldIds(): readonly RunId[];
  /** Starts a run that then kills the only worker that holds it. */
  startSuspect(): Promise<RunId>;
  /** Ends this run, or that many of those held. */
  end(which: RunId | number, slotMs?: number): Promise<void>;
}

export function createClaimer(
  concurrency: number,
  wrap: (store: Store) => Partial<Store> = () => ({}),
): Claimer {
  const world = createManualWorld();
  const claims: ClaimRequest[] = [];
  const expired: string[] = [];
  let hungry = 0;
  const watched: Store = { ...world.store, ...wrap(world.store) };
  const store: Store = {
    ...watched,
    claimRuns(request) {
      claims.push(request);
      return watched.claimRuns(request);
    },
  };
  const seams = world.seams({ store });
  const slots = createSlots(concurrency);
  const registration = createRegistration(seams, {
    leaseMs,
    host: "test",
    pid: 1,
    queues: ["default"],
    concurrency,
  });
  const idleExecution = {
    done: new Promise<never>(() => {}),
    told() {},
    drop() {},
    release() {},
    bytes: () => 0,
    begin() {},
    resume: () => null,
    isLeaving: () => false,
    stepsInProgress: () => [],
    stepsSince: () => [],
  };
  const loop = createClaimLoop({
    ...seams,
    registration,
    slots,
    lanes: [lane, crashingLane],
    concurrency,
    leaseMs,
    pollMs: 1_000,
    execute: ({ runId, epoch }) =>
      slots.add({ runId, epoch, execution: idleExecution, isWaiting: slots.free() <= 0, isEnding: false }),
    expired: (workerId) => {
      expired.push(workerId);
      registration.renew(false);
    },
    hungry: () => void (hungry += 1),
    remembers: () => false,
    awake() {},
  });
  store.subscribe((hint) => {
    if (hint.kind === "ready") loop.hint();
  });

  const start = async (run: Partial<NewRun> = {}): Promise<RunId> => {
    const id = seams.ids.next();
    const plain = { ...plainRun, workflow: "work", version: 1, queue: "default" };
    await world.store.createRuns([{ id, ...plain, ...run }]);
    return id;
  };
  const crash = async (): Promise<void> => {
    const workerId = seams.ids.next();
    const worker = { leaseMs: 1, host: "test", pid: 2, queues: ["crashing"], concurrency: 1 };
    await world.store.registerWorker({ ...worker, id: workerId });
    await world.store.claimRuns({ workerId, lanes: [crashingLane], limit: 1, suspects: false, begin: true });
    await world.advance(1);
    await world.store.sweep({ limit: 10, after: null });
  };
  const endOne = async (held: HeldRun, slotMs: number): Promise<void> => {
    const lease = { runId: held.runId, epoch: held.epoch, workerId: registration.workerId };
    await world.store.end({
      lease,
      parentId: null,
      events: [],
      children: [],
      status: "completed",
      output: null,
      error: null,
    });
    slots.remove(held);
    const next = slots.held().find(({ isWaiting }) => isWaiting);
    if (next !== undefined && slots.free() > 0) slots.begin(next);
    loop.freed(held.runId, slotMs);
  };
  return {
    ...world,
    loop,
    slots,
    registration,
    claims,
    expired,
    hungry: () => hungry,
    start,
    async startMany(count) {
      for (let index = 0; index < count; index += 1) await start();
    },
    async startSuspect() {
      const runId = await start({ queue: "crashing" });
      await crash();
      return runId;
    },
    heldIds: () => slots.held().map(({ runId }) => runId),
    async end(which, slotMs = 5) {
      const held = slots.held();
      const ending =
        typeof which === "number"
          ? held.filter(({ isWaiting }) => !isWaiting).slice(0, which)
          : held.filter(({ runId }) => runId === which);
      for (const run of ending) await endOne(run, slotMs);
      await world.rest();
    },
  };
}
