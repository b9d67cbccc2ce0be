import { PawlError } from "./error.ts";
import { sqlState } from "./sql-state.ts";
import type { BeginOptions } from "./transactor.ts";

/** What is needed of a client of `pg`. */
export interface TransactClient {
  query(text: string): Promise<{ readonly command?: string }>;
}

/** The connection broke before COMMIT was sent: all is rolled back, whatever the function made of it, which is the cause. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

const inFailedTransaction = "25P02";

/**
 * Acts in a transaction of this client. COMMIT of a transaction that has failed answers ROLLBACK, without an error: that
 * is one here. `hasLost` is told that the connection can no longer be used.
 * @throws {ConnectionLost}
 */
export async function transact<T>(
  client: TransactClient,
  { isolation }: BeginOptions,
  work: () => Promise<T>,
  hasLost: () => void,
): Promise<T> {
  /** One that was refused BEGIN or ROLLBACK may be inside a transaction still. */
  const ask = (text: string, endsAnyway = false): Promise<{ readonly command?: string }> =>
    client.query(text).catch((error: unknown) => {
      if (!endsAnyway || sqlState(error) === null) hasLost();
      throw error;
    });
  const assertAnswered = (answer: unknown, cause: unknown): void => {
    if (sqlState(answer) === null) throw new ConnectionLost("the connection broke", { cause });
  };
  await ask(isolation === undefined ? "begin" : `begin isolation level ${isolation}`).catch(
    (error: unknown) => {
      assertAnswered(error, error);
      if (sqlState(error) === inFailedTransaction)
        throw new ConnectionLost("somebody left the connection in a failed transaction", { cause: error });
      throw error;
    },
  );
  let result: T;
  try {
    result = await work();
  } catch (error) {
    // Where that fails, the connection goes, and the transaction with it.
    await ask("rollback").catch((unanswered: unknown) => assertAnswered(unanswered, error));
    throw error;
  }
  const { command } = await ask("commit", true);
  if (command !== "COMMIT") throw transactionAborted();
  return result;
}

/** A query of the transaction failed, and whoever made it went on. */
export function transactionAborted(options?: { readonly cause?: unknown }): PawlError {
  return new PawlError(
    "TRANSACTION_ABORTED",
    "A query of the transaction failed, and its error was caught: Postgres has rolled everything back. Let the error out, or put what may fail into a savepoint.",
    {},
    options,
  );
}
