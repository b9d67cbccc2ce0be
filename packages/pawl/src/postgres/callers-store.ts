import { PawlError } from "../core/error.ts";
import { wrappedState } from "../core/sql-state.ts";
import { invalidTransaction, readAnswer, type Transaction } from "../core/transaction.ts";
import type { CallersStore } from "../store/callers-store.ts";
import type { TellAnswer } from "../store/message.ts";
import { bindSchema, type SchemaName } from "./schema-name.ts";
import type { Transition } from "./transition.ts";
import { decodeCreated, type CreatedRow } from "./transitions/create-runs.ts";
import {
  createInTransaction,
  createInTransactionValues,
  readClockInTransaction,
  tellInTransaction,
  tellInTransactionValues,
} from "./transitions/in-transaction.ts";
import {
  decodeSignalOrStart,
  signalOrStartInTransaction,
  type SignalOrStartRow,
  signalOrStartValues,
} from "./transitions/signal-or-start.ts";

/** The store inside a caller's transaction: uses that connection and no other. */
export function createCallersStore(tx: Transaction, schema: SchemaName, clock: string): CallersStore {
  const ask = async (statement: Transition, values: readonly unknown[]): Promise<string> => {
    try {
      return await readAnswer(tx, bindSchema(statement.text, schema, clock), values);
    } catch (error) {
      throw translateInTransaction(error, statement, schema);
    }
  };

  return {
    async now() {
      return Number(await ask(readClockInTransaction, []));
    },
    async createRuns(runs) {
      if (runs.length === 0) return [];
      const answer = await ask(createInTransaction, createInTransactionValues(runs));
      return decodeCreated(runs, JSON.parse(answer) as readonly CreatedRow[]);
    },
    async tell(message) {
      return (await ask(tellInTransaction, tellInTransactionValues(message))) as TellAnswer;
    },
    async signalOrStart(call) {
      const answer = await ask(signalOrStartInTransaction, signalOrStartValues(call));
      return decodeSignalOrStart(JSON.parse(answer) as SignalOrStartRow);
    },
  };
}

/**
 * Says what is wrong with the transaction, where that is it. All else stays the driver's own error: whoever began the
 * transaction looks for its SQLSTATE, as in trying again after a serialization failure.
 */
export function translateInTransaction(error: unknown, statement: Transition, schema: SchemaName): unknown {
  const state = wrappedState(error);
  const details = { statement: statement.name, sqlState: state, schema: schema.name };
  const options = { cause: error };
  switch (state ?? "") {
    case "42P01":
    case "42883":
    case "3F000":
      return new PawlError(
        "SCHEMA_MISSING",
        `The transaction's database has no schema "${schema.name}" of Pawl's, or an old one: is it the database that pawl.migrate() was run on?`,
        details,
        options,
      );
    case "42501":
      return new PawlError(
        "DATABASE",
        "The transaction's role may not do this: grant it with pawl.migrate({ grantTo }).",
        details,
        options,
      );
    case "25006":
      return invalidTransaction(
        "The transaction is read-only: nothing can be started in it.",
        details,
        options,
      );
    case "25P02":
      return invalidTransaction(
        "The transaction has failed before, at a query of its own, and can only be rolled back.",
        details,
        options,
      );
    default:
      return error;
  }
}
