import { backOffMs } from "../core/back-off.ts";
import { wrappedState } from "../core/sql-state.ts";
import { delay } from "../core/timers.ts";
import { transactionAborted } from "../core/transact.ts";
import type { CompletionId, TakeOver, Transactor } from "../core/transactor.ts";
import { Lost } from "./holding.ts";
import { createPatience } from "./patience.ts";
import { Settled } from "./settled.ts";
import { isRefusal, mayPassUncalled, TryAgain } from "./transaction-error.ts";
import type { TransactionsParts, Try } from "./transaction-try.ts";

const firstPauseMs = 100;
const longestPauseMs = 5_000;
/** Somebody else may be about to commit, which takes 5 s at most. */
const longestTakeOverMs = 15_000;

/** Somebody else has left a tombstone, or completed it. */
class TakenOver extends Error {
  override readonly name = "TakenOver";
}

/**
 * Tries a transaction in a database that runs do not live in. It commits there together with a row that says so; whoever
 * tries it next finds that row, or leaves a tombstone that keeps everybody before from committing. Only then the result is
 * recorded, as any step's is.
 */
export function createForeign(
  parts: TransactionsParts,
): (attempt: Try, on: Transactor<unknown>) => Promise<Settled> {
  const { claimed, holding, payloads, ids, random, timers, log, life } = parts;
  /** What this holder has tried. */
  const tried = new Set<string>();

  /** Asks until the database answers where it must: a transaction that may have committed is never called a failure. */
  const takeOver = async (
    on: Transactor<unknown>,
    id: CompletionId,
    isInDoubt: boolean,
  ): Promise<TakeOver> => {
    for (let failures = 1; ; failures++) {
      holding.assertHeld();
      const patience = createPatience(timers, longestTakeOverMs);
      try {
        patience.begin();
        const taken = on.begin((_, handle) => on.completions.takeOver(handle, id));
        taken.catch(() => {});
        return await Promise.race([taken, patience.isOver]);
      } catch (error) {
        if (!isInDoubt && !mayPassUncalled(error) && wrappedState(error) !== null) throw error;
        log.warn("The transaction's database did not answer; it is asked again.", { failures, error });
      } finally {
        patience.end();
      }
      await delay(timers, backOffMs(failures, random, firstPauseMs, longestPauseMs));
    }
  };

  return async ({ key, terms, place, call }, on) => {
    // A name has no bare `#`, and an occurrence is a number: no other step is called so.
    const step = life === 0 ? key : `${key}#since${life}`;
    const id = (): CompletionId => ({ runId: claimed.runId, step, token: ids.next() });
    const mine = id();
    // Nobody else has held the run, and this holder has not tried it: there is nobody to keep out.
    const isFirst = claimed.epoch === 1 && !tried.has(key);
    tried.add(key);
    if (!isFirst) {
      const taken = await takeOver(on, mine, false);
      if (taken.state === "completed") return settled(taken.result);
    }

    const reached = { isOver: false, isCompleted: false };
    const commit = createPatience(timers);
    try {
      const begun = on.begin(
        async (tx, handle) => {
          const result = await call(tx);
          const data = payloads.encode(result, place, `The result of transaction "${key}"`);
          holding.assertHeld();
          assertOpen(reached);
          if (!(await on.completions.complete(handle, mine, isFirst, data))) throw new TakenOver();
          assertOpen(reached);
          reached.isCompleted = true;
          commit.begin();
          return data;
        },
        { isolation: terms.isolation },
      );
      begun.catch(() => {});
      const data = await Promise.race([begun, commit.isOver]);
      if (on.checksCommit) return settled(data);
    } catch (error) {
      reached.isOver = true;
      if (error instanceof Lost) throw error;
      if (error instanceof TakenOver) {
        await holding.confirm();
        throw new TryAgain("somebody else has taken it over", { cause: transactionTakenOver(error) });
      }
      if (!reached.isCompleted || isRefusal(error)) throw error;
      const taken = await takeOver(on, id(), true);
      if (taken.state === "completed") return settled(taken.result);
      throw new TryAgain("COMMIT was not carried out", { cause: error });
    } finally {
      commit.end();
    }
    // A library may take any answer to COMMIT for a good one.
    const taken = await takeOver(on, id(), true);
    if (taken.state === "completed") return settled(taken.result);
    throw transactionAborted();
  };
}

/** A library that has said that it is over must not commit after all. */
function assertOpen({ isOver }: { readonly isOver: boolean }): void {
  if (isOver) throw new Error("the transaction is over");
}

function settled(data: Extract<TakeOver, { state: "completed" }>["result"]): Settled {
  return new Settled({ kind: "step_completed", data });
}

function transactionTakenOver(cause: Error): Error {
  return new Error("Another worker has taken the transaction over.", { cause });
}
