import type { Probe } from "../../packages/pawl/src/core/crash-point.ts";
import { createIds } from "../../packages/pawl/src/core/ids.ts";
import type { Log } from "../../packages/pawl/src/core/log.ts";
import type { Audience } from "../../packages/pawl/src/store/audience.ts";
import { createStoreClock } from "../../packages/pawl/src/store/store-clock.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { Taker } from "../../packages/pawl/src/store/taker.ts";
import { createWorker, type Worker } from "../../packages/pawl/src/worker/worker.ts";
import type { ProgramWorkflow } from "../gen/program-workflow.ts";
import type { FaultyTransactions } from "./faulty-transactions.ts";
import type { Plan } from "./plan.ts";
import type { Rng } from "./rng.ts";
import type { SimProcess } from "./sim-process.ts";
import type { Tenures } from "./tenures.ts";

export interface ProcessSeams {
  readonly process: SimProcess;
  readonly store: Store;
  readonly transactions: FaultyTransactions;
  readonly rng: Rng;
  readonly log: Log;
  /** Workers of this process that may hold what is started in it. */
  readonly takers: Set<Taker>;
  /** Clients of this process that wait for runs to end. */
  readonly audiences: Set<Audience>;
}

/** A worker in a simulated process, not yet started. */
export function createSimWorker(
  { process, store, transactions, rng, log, takers, audiences }: ProcessSeams,
  plan: Plan,
  probe: Probe,
  workflows: readonly ProgramWorkflow[],
  tenures: Tenures,
): Worker {
  const { clock, timers } = process;
  const storeClock = createStoreClock(clock, store);
  return createWorker(
    {
      store: tenures.watch(store),
      takers,
      audiences,
      transactions: transactions.holder,
      clock,
      storeClock,
      timers,
      random: rng,
      ids: createIds(() => storeClock.now(), rng),
      log,
      probe,
      settle: () => process.settle(),
      host: process.name,
      pid: 1,
    },
    {
      workflows,
      concurrency: plan.concurrency,
      stickyRuns: plan.stickyRuns,
      lease: plan.leaseMs,
      pollInterval: plan.pollMs,
    },
  );
}
