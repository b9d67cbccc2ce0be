import { backOffMs } from "../core/back-off.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import { delay } from "../core/timers.ts";
import { ConnectionLost } from "../core/transact.ts";
import { invalidTransaction } from "../core/transaction.ts";
import { createForeign } from "./foreign-transaction.ts";
import { Lost } from "./holding.ts";
import { createNative } from "./native-transaction.ts";
import type { CallStanding } from "./request.ts";
import type { Settled } from "./settled.ts";
import type { StepContext } from "./step-context.ts";
import { mayPass, mayPassUncalled, TryAgain } from "./transaction-error.ts";
import type { TransactionTerms } from "./transaction-options.ts";
import type { TransactionsParts, Try } from "./transaction-try.ts";

/** Calls a transaction's function, and answers once its result is in the history, or is sure to get there. */
export type Transact = (
  key: string,
  terms: TransactionTerms,
  step: StepContext,
  standing: CallStanding,
) => Promise<Settled>;

const firstPauseMs = 10;
const longestPauseMs = 1_000;

export function createTransactions(parts: TransactionsParts): Transact {
  const { claimed, holding, transactions, clock, random, timers, log } = parts;
  const tryForeign = createForeign(parts);
  const tryNative = transactions === undefined ? null : createNative({ ...parts, transactions });

  /** Where it goes, with which protocol: never guessed. A transaction in the wrong database is refused there. */
  const protocolOf = ({ on }: TransactionTerms): ((attempt: Try) => Promise<Settled>) => {
    if (on !== null && (on.isForeign || tryNative === null)) return (attempt) => tryForeign(attempt, on);
    if (tryNative === null)
      throw invalidTransaction(
        "There are no transactions in memory: give ctx.transaction a database of your own as { on }, or use a Postgres.",
      );
    return (attempt) => tryNative(attempt, on);
  };

  return async (key, terms, step, standing) => {
    const tryOnce = protocolOf(terms);
    const began = clock.now();
    const fact = {
      kind: "step_completed",
      name: key,
      attempt: claimed.attempt,
      beganAt: holding.time.estimate(),
    } as const;
    const place = placeOfEvent(claimed.runId, fact);
    let calls = 0;
    for (let failures = 1; ; failures++) {
      const callsBefore = calls;
      try {
        holding.assertHeld();
        return await tryOnce({
          key,
          terms,
          place,
          fact,
          tookMs: () => clock.now() - began,
          isAhead: (is) => standing.isAhead(is),
          async call(tx) {
            calls += 1;
            const result = await terms.call(tx, step);
            // What was given up is rolled back: the run may have ended without it.
            if (!standing.isAwaited()) throw new Lost();
            return result;
          },
        });
      } catch (thrown) {
        // Its function may have thrown what the broken connection answered, or something that comes of it.
        const isBroken = thrown instanceof ConnectionLost;
        const error = isBroken ? thrown.cause : thrown;
        if (error instanceof Lost) throw error;
        holding.assertHeld();
        // Without a connection the function is not even called, which it need not fail for.
        const wasCalled = calls > callsBefore;
        const isSpent = wasCalled && calls >= terms.conflictAttempts;
        const isPassing = isBroken || (wasCalled ? mayPass(error) : mayPassUncalled(error));
        if (!isPassing || isSpent || step.signal.aborted) throw reasonOf(error);
        log.warn("A transaction was rolled back, and is tried again.", { step: key, calls, error });
      }
      await delay(timers, backOffMs(failures, random, firstPauseMs, longestPauseMs), step.signal);
    }
  };
}

function reasonOf(error: unknown): unknown {
  return error instanceof TryAgain ? (error.cause ?? error) : error;
}
