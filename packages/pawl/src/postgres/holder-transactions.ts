import type pg from "pg";
import { PawlError } from "../core/error.ts";
import { isPassing } from "../core/sql-state.ts";
import type { Timers } from "../core/timers.ts";
import { transact, transactionAborted } from "../core/transact.ts";
import { readAnswer, type Transaction } from "../core/transaction.ts";
import type { Transactor } from "../core/transactor.ts";
import type { HolderTransactions, OwnTransaction } from "../store/holder-transactions.ts";
import { borrowClient } from "./borrow-client.ts";
import { translateInTransaction } from "./callers-store.ts";
import { destroySocket } from "./database.ts";
import { bindSchema, type SchemaName } from "./schema-name.ts";
import type { Transition } from "./transition.ts";
import {
  openTransaction,
  openTransactionValues,
  recordInTransaction,
  recordInTransactionValues,
} from "./transitions/in-transaction.ts";

interface HolderTransactionsParts {
  /** Makes the pool, when it is first needed. */
  readonly pool: () => pg.Pool;
  readonly onPoolError: (error: Error) => void;
  readonly schema: SchemaName;
  readonly clock: string;
  readonly timers: Timers;
  /** A BEGIN or COMMIT of ours without an answer for so long is given up and its connection destroyed. */
  readonly queryTimeoutMs: number;
}

/**
 * Between two statements, a function on a connection of ours may take so long: a process that was stopped must not keep
 * its locks for ever.
 */
const longestIdling = "1 minute";

export function createHolderTransactions(
  parts: HolderTransactionsParts,
): HolderTransactions & { close(): Promise<void> } {
  const { schema, clock, timers, queryTimeoutMs } = parts;
  let pool: pg.Pool | null = null;
  const lent = new Set<pg.PoolClient>();
  /** Handles of transactions on our own connections, and how to ask there what must be answered soon. */
  const ours = new WeakMap<Transaction, Transaction>();

  const openPool = (): pg.Pool => {
    if (pool !== null) return pool;
    pool = parts.pool();
    pool.on("error", parts.onPoolError);
    return pool;
  };

  const ask = async (tx: Transaction, statement: Transition, values: readonly unknown[]): Promise<string> => {
    try {
      return await readAnswer(ours.get(tx) ?? tx, bindSchema(statement.text, schema, clock), values);
    } catch (error) {
      const translated = translateInTransaction(error, statement, schema);
      // The record fails as every statement does after one that has failed.
      if (PawlError.is(translated, "INVALID_TRANSACTION") && translated.details["sqlState"] === "25P02")
        throw transactionAborted({ cause: error });
      // A statement of ours, and not of the function's.
      throw isPassing(translated) ? unavailable(translated) : translated;
    }
  };

  const own: Transactor<OwnTransaction>["begin"] = async (work, options = {}) => {
    const { client, giveBack } = await borrowClient(openPool(), timers).catch((error: unknown) => {
      throw unavailable(error);
    });
    let isBroken = false;
    const lose = (): void => {
      isBroken = true;
      destroySocket(client);
    };
    const ender = {
      query(text: string): Promise<pg.QueryResult> {
        const query = { text, query_timeout: queryTimeoutMs };
        return client.query(query);
      },
    };
    const { handle, seal } = lend(client);
    ours.set(handle, {
      async query<Row>(text: string, values: readonly unknown[] = []) {
        const query = { text, values: [...values], query_timeout: queryTimeoutMs };
        const { rows, rowCount } = await client.query(query);
        return { rows: rows as Row[], rowCount };
      },
    });
    lent.add(client);
    try {
      return await transact(ender, options, () => work(handle, handle).finally(seal), lose);
    } finally {
      lent.delete(client);
      giveBack(isBroken);
    }
  };

  return {
    own: { isForeign: false, checksCommit: true, completions: noCompletions, begin: own },
    async open(tx, token, lease) {
      const idle = ours.has(tx) ? longestIdling : null;
      return (await ask(tx, openTransaction, openTransactionValues(token, lease, idle))) as "open" | "lost";
    },
    async record(tx, token, lease, facts) {
      const answer = await ask(tx, recordInTransaction, recordInTransactionValues(token, lease, facts));
      if (answer === "lost" || answer === "late" || answer === "outside") return answer;
      const { told, now_ms: now } = JSON.parse(answer) as { told: boolean; now_ms: number };
      return { told, now };
    },
    async close() {
      // Whoever still has one was given up: the pool would wait for it for ever.
      for (const client of lent) destroySocket(client);
      await pool?.end();
    },
  };
}

/** Lends a connection to a function, until its transaction ends. */
function lend(client: pg.PoolClient): { handle: OwnTransaction & Transaction; seal: () => void } {
  let isOver = false;
  return {
    handle: {
      async query<Row>(text: string, values: readonly unknown[] = []) {
        if (isOver)
          throw new PawlError(
            "INVALID_TRANSACTION",
            "The transaction is over: a query came after its function had returned.",
          );
        const { rows, rowCount } = await client.query(text, [...values]);
        return { rows: rows as Row[], rowCount };
      },
    },
    seal() {
      isOver = true;
    },
  };
}

function unavailable(error: unknown): PawlError {
  const reason = error instanceof Error ? error.message : String(error);
  return new PawlError("STORE_UNAVAILABLE", `No answer to the transaction: ${reason}.`, {}, { cause: error });
}

const misplaced = (): Promise<never> =>
  Promise.reject(new PawlError("INTERNAL", "Pawl's own database needs no completions. Please report this."));

const noCompletions = { takeOver: misplaced, complete: misplaced };
