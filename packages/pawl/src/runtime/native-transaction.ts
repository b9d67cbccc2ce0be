import { PawlError } from "../core/error.ts";
import { transactionAborted } from "../core/transact.ts";
import { invalidTransaction, type Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import type { HolderTransactions, WithinAnswer } from "../store/holder-transactions.ts";
import type { Entry } from "./entry.ts";
import { createPatience } from "./patience.ts";
import { Settled } from "./settled.ts";
import { isRefusal, TryAgain } from "./transaction-error.ts";
import type { TransactionsParts, Try } from "./transaction-try.ts";

interface NativeParts extends TransactionsParts {
  readonly transactions: HolderTransactions;
}

/** The lease is not in the transaction's database: it is gone, or this is another database. */
class NotHere extends Error {
  override readonly name = "NotHere";
}

type Recorded = Exclude<WithinAnswer, string>;

/**
 * Tries a transaction in the database that runs live in. The function comes first and holds nobody: the fence is the last
 * statement before COMMIT, and only from there on the run's other writes wait.
 */
export function createNative(
  parts: NativeParts,
): (attempt: Try, on: Transactor<unknown> | null) => Promise<Settled> {
  const { holding, transactions, payloads, ids, timers } = parts;

  return async (attempt, on) => {
    // In the user's transaction it would be given a lease together with all others of its pack, which would wait for that.
    if (holding.lease().pack !== undefined) await holding.confirm();
    const lease = holding.lease();
    const transactor: Transactor<unknown> = on ?? transactions.own;
    const token = ids.next();
    const reached: Reached = { entry: null, recorded: null, isOver: false };
    const commit = createPatience(timers);

    const work = async (tx: unknown, handle: Transaction): Promise<void> => {
      if ((await transactions.open(handle, token, lease)) === "lost") throw new NotHere();
      const result = await attempt.call(tx);
      const { key, place, fact, tookMs, isAhead } = attempt;
      const data = payloads.encode(result, place, `The result of transaction "${key}"`);
      const entry = await holding.enter({ ...fact, data }, tookMs(), isAhead);
      if (reached.isOver) entry.rolledBack();
      assertOpen(reached);
      reached.entry = entry;
      const answer = await transactions.record(handle, token, lease, entry.facts);
      assertOpen(reached);
      reached.recorded = readRecorded(answer);
      commit.begin();
    };

    const settle = async (): Promise<void> => {
      const { isolation } = attempt.terms;
      const begun = transactor.begin(work, { isolation });
      begun.catch(() => {});
      await Promise.race([begun, commit.isOver]);
      const { entry, recorded } = reached;
      if (entry === null || recorded === null)
        throw invalidTransaction("The transactor has not called its work to the end.");
      // A library may take any answer to COMMIT for a good one.
      const isThere = on === null || (await entry.isThere());
      if (isThere) entry.committed(recorded);
      else if (!(await entry.findOut())) throw transactionAborted();
    };

    try {
      await settle();
    } catch (error) {
      reached.isOver = true;
      const { entry, recorded } = reached;
      const isInDoubt = recorded !== null && !isRefusal(error) && holding.isHeld();
      if (entry !== null && isInDoubt) {
        if (await entry.findOut()) return new Settled(null);
        throw new TryAgain("COMMIT was not carried out", { cause: error });
      }
      entry?.rolledBack();
      if (!(error instanceof NotHere)) throw error;
      await holding.confirm();
      throw elsewhere();
    } finally {
      reached.isOver = true;
      reached.entry?.rolledBack();
      commit.end();
    }
    return new Settled(null);
  };
}

/** How far a try has come. */
interface Reached {
  entry: Entry | null;
  recorded: Recorded | null;
  /** The transactor has said that it is over, or was given up: nothing may be sent any more. */
  isOver: boolean;
}

/** A library that has said that it is over must not commit after all. */
function assertOpen({ isOver }: Reached): void {
  if (isOver) throw new Error("the transaction is over");
}

function readRecorded(answer: WithinAnswer): Recorded {
  switch (answer) {
    case "lost":
      throw new NotHere();
    case "late":
      throw new PawlError("INTERNAL", "The history has gone on without its holder. Please report this.");
    case "outside":
      throw invalidTransaction(
        "The function has ended its transaction by itself: leave BEGIN, COMMIT and ROLLBACK to ctx.transaction.",
      );
    default:
      return answer;
  }
}

function elsewhere(): PawlError {
  return invalidTransaction(
    "The transaction's database has a schema of Pawl's, but not this run: it is another database. Say so with { foreign: true }.",
  );
}
