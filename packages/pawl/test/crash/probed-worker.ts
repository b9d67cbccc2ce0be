import { hostname } from "node:os";
import { createIds } from "../../src/core/ids.ts";
import type { Transactor, Log, WorkerOptions } from "../../src/index.ts";
import { createPostgresStore } from "../../src/postgres/postgres-store.ts";
import type { HolderTransactions } from "../../src/store/holder-transactions.ts";
import { createStoreClock } from "../../src/store/store-clock.ts";
import type { Store } from "../../src/store/store.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { systemRandom } from "../../src/system/system-random.ts";
import { systemSettle } from "../../src/system/system-settle.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { createWorker, type Worker } from "../../src/worker/worker.ts";
import type { Boundary } from "./messages.ts";

export type Pass = (boundary: Boundary) => void;

interface ProbedParts {
  readonly url: string;
  readonly schema: string;
  readonly log: Log;
  readonly pass: Pass;
}

/** A worker as `createPawl` makes it, which says where it passes. When it stops, its connections end. */
export function createProbedWorker({ url, schema, log, pass }: ProbedParts, options: WorkerOptions): Worker {
  const store = createPostgresStore({
    url,
    schema,
    connections: 6,
    timers: systemTimers,
    random: systemRandom,
    log,
  });
  const storeClock = createStoreClock(systemClock, store);
  const worker = createWorker(
    {
      store: probeStore(store, pass),
      transactions: probeTransactions(store.transactions, pass),
      clock: systemClock,
      storeClock,
      timers: systemTimers,
      random: systemRandom,
      ids: createIds(() => storeClock.now(), systemRandom),
      log,
      probe: pass,
      settle: systemSettle,
      host: hostname(),
      pid: process.pid,
    },
    options,
  );
  return {
    ...worker,
    async stop(how) {
      await worker.stop(how);
      await store.close();
    },
  };
}

/** The calls that the crash points leave out. */
function probeStore(store: Store, pass: Pass): Store {
  const after =
    <Args extends readonly unknown[], Answer>(boundary: Boundary, call: (...args: Args) => Promise<Answer>) =>
    async (...args: Args): Promise<Answer> => {
      const answer = await call(...args);
      pass(boundary);
      return answer;
    };
  return {
    ...store,
    readInbox: after("inbox.read", (look) => store.readInbox(look)),
    loadHistory: after("history.loaded", (...what) => store.loadHistory(...what)),
    lastPositions: after("positions.read", (runId, names) => store.lastPositions(runId, names)),
    wakeDue: after("due.woken", (limit, holder) => store.wakeDue(limit, holder)),
  };
}

function probeTransactions(transactions: HolderTransactions, pass: Pass): HolderTransactions {
  return {
    ...transactions,
    own: probeTransactor(transactions.own, pass, "transaction.committed"),
    async record(tx, token, lease, event) {
      const answer = await transactions.record(tx, token, lease, event);
      pass("transaction.recorded");
      return answer;
    },
  };
}

/** Of a database that is taken for another than Pawl's. */
export function probeForeign<Tx>(foreign: Transactor<Tx>, pass: Pass): Transactor<Tx> {
  const { completions } = foreign;
  return {
    ...probeTransactor(foreign, pass, "foreign.committed"),
    completions: {
      takeOver: (tx, id) => completions.takeOver(tx, id),
      async complete(tx, id, isFirst, result) {
        const isMine = await completions.complete(tx, id, isFirst, result);
        pass("foreign.completed");
        return isMine;
      },
    },
  };
}

function probeTransactor<Tx>(transactor: Transactor<Tx>, pass: Pass, committed: Boundary): Transactor<Tx> {
  return {
    ...transactor,
    async begin(work, options) {
      const result = await transactor.begin(work, options);
      pass(committed);
      return result;
    },
  };
}
