import { PawlError } from "../core/error.ts";
import type { Ids } from "../core/ids.ts";
import { plainPayloads } from "../core/payloads.ts";
import { beganAnew, presentLife, undoneBefore } from "../core/present-life.ts";
import type { Watch } from "../core/watch.ts";
import type { HolderTransactions } from "../store/holder-transactions.ts";
import type { ClaimedRun } from "../store/lease.ts";
import { createBell } from "./bell.ts";
import { Course } from "./course.ts";
import type { Outcome } from "./ending.ts";
import { createHolding, Lost, type HoldingParts } from "./holding.ts";
import { createInbox } from "./inbox.ts";
import { createOrders } from "./orders.ts";
import { createRunLog } from "./run-log.ts";
import { createSteps, type RunningStep } from "./steps.ts";
import { createStreams } from "./streams.ts";
import { createTransactions } from "./transactions.ts";
import type { Workflow } from "./workflow.ts";

export type { Outcome } from "./ending.ts";

/** One run in a worker's hands, from its claim until it is let go. */
export interface Execution {
  /** Never rejects. `lost`: the lease is gone, or was said to be; the store must not be asked about it any more. */
  readonly done: Promise<Outcome>;
  /** Unread messages may be there. */
  told(): void;
  /** The lease is known to be gone: stops at once. */
  drop(): void;
  /** Starts nothing new, and gives the run back once its code, told what the running steps did, asks for more. */
  release(): void;
  /** About how many bytes a parked run holds on to. */
  bytes(): number;
  /**
   * The parked run was claimed again by the same worker: goes on where its code waits, without reading or replaying
   * anything. Null, and of no more use, unless everything is as it was left.
   */
  resume(again: ClaimedRun): Execution | null;
  stepsInProgress(): readonly RunningStep[];
  /** Keys of the steps that ran at this instant of the process's clock, or have since. */
  stepsSince(at: number): readonly string[];
}

export interface ExecutionDeps extends HoldingParts {
  readonly findWorkflow: (name: string, version: number) => Workflow | undefined;
  readonly ids: Ids;
  /** Looks over the code's shoulder. Default: nobody does. */
  readonly watch?: Watch | undefined;
  /** What the store can do inside a user's transaction. Default: nothing. */
  readonly transactions?: HolderTransactions | undefined;
  /** Resolves when everything that can go on without the outside world has done so. */
  readonly settle: () => Promise<void>;
  /** How long code that does not ask for what its history holds may take until it does. Default 2,000 ms. */
  readonly restGraceMs?: number;
  /** How long a run stays held after a fact that led the code nowhere, before it is parked. Default 100 ms. */
  readonly parkGraceMs?: number;
}

/** Begins to execute a claimed run at once. */
export function createExecution(claimed: ClaimedRun, deps: ExecutionDeps): Execution {
  const { probe, payloads = plainPayloads } = deps;
  const log = createRunLog(deps.log, {
    runId: claimed.runId,
    workflow: claimed.workflow,
    version: claimed.version,
  });
  const bell = createBell(deps.timers);
  const holding = createHolding(claimed, { ...deps, log });
  const streams = createStreams({
    runId: claimed.runId,
    holding,
    payloads,
    written: () => bell.ring(),
  });
  const steps = createSteps({
    claimed,
    streams,
    holding,
    probe,
    log,
    payloads,
    clock: deps.clock,
    timers: deps.timers,
    random: deps.random,
    watch: deps.watch,
    changed: () => bell.ring(),
  });
  let isReleasing = false;
  let course: Course | null = null;

  const execute = async (): Promise<Outcome> => {
    const workflow = deps.findWorkflow(claimed.workflow, claimed.version);
    if (workflow === undefined) {
      log.error("The run's workflow is not registered here: it is given back.");
      await holding.release();
      return "released";
    }
    const inbox = createInbox();
    // A run that must not be executed twice is only now known to begin.
    if (workflow.crashLimit === 0) await holding.begin();
    const [input, loaded, messages] = await Promise.all([
      claimed.isInputLeftOut ? holding.loadInput() : claimed.input,
      claimed.lastSeq > 0 ? holding.loadHistory() : [],
      claimed.told ? holding.readInbox() : [],
    ]);
    const history = presentLife(loaded);
    inbox.fill(messages);
    streams.recall(history);
    steps.remember(history, undoneBefore(loaded));
    course = new Course({
      ...deps,
      claimed: { ...claimed, input },
      workflow,
      history,
      holding,
      inbox,
      orders: createOrders(claimed, history, inbox, holding),
      steps,
      streams,
      bell,
      log,
      payloads,
      restGraceMs: deps.restGraceMs ?? 2_000,
      parkGraceMs: deps.parkGraceMs ?? 100,
      isReleasing: () => isReleasing,
      cancelRecorded: () => probe("cancel.recorded"),
      transact: createTransactions({ ...deps, claimed, holding, log, payloads, life: beganAnew(history) }),
    });
    return course.run();
  };

  const continueCourse = async (parked: Course): Promise<Outcome> => {
    const workflow = deps.findWorkflow(claimed.workflow, claimed.version);
    if (workflow?.crashLimit === 0) await holding.begin();
    return parked.resume();
  };

  /** From a claim until it is let go. */
  const hold = (act: () => Promise<Outcome>): Execution => {
    let settleDone: (outcome: Outcome) => void = () => {};
    const done = new Promise<Outcome>((resolve) => {
      settleDone = resolve;
    });
    const drop = (): void => {
      holding.drop();
      steps.abort(
        new PawlError("LEASE_LOST", `Run ${claimed.runId} is no longer held.`, { runId: claimed.runId }),
      );
      bell.ring();
      settleDone("lost");
    };
    act().then(settleDone, (error: unknown) => {
      if (!(error instanceof Lost))
        log.error("A bug in Pawl stopped the execution: please report it.", { error });
      drop();
    });
    return {
      done,
      told() {
        holding.told();
        bell.ring();
      },
      drop,
      release() {
        isReleasing = true;
        bell.ring();
      },
      bytes: () => holding.bytes(),
      resume(again) {
        const parked = course;
        if (parked === null || !parked.isResumable || !holding.renew(again)) return null;
        return hold(() => continueCourse(parked));
      },
      stepsInProgress: () => steps.inProgress(),
      stepsSince: (at) => steps.ranSince(at),
    };
  };
  return hold(execute);
}
