import { PawlError } from "../core/error.ts";
import { invalidTransaction, type Transaction } from "../core/transaction.ts";
import type { CallersStore } from "../store/callers-store.ts";
import type { TellAnswer } from "../store/message.ts";
import { bindSchema, type SchemaName } from "./schema-name.ts";
import { sqlState } from "./sql-error.ts";
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
    let answer: unknown;
    try {
      answer = await tx.query(bindSchema(statement.text, schema, clock), [...values]);
    } catch (error) {
      throw translateInTransaction(error, statement, schema);
    }
    const rows = typeof answer === "object" && answer !== null && "rows" in answer ? answer.rows : null;
    const [row] = Array.isArray(rows) ? (rows as readonly unknown[]) : [];
    if (typeof row === "object" && row !== null && "answer" in row && typeof row.answer === "string")
      return row.answer;
    throw invalidTransaction(
      "The transaction's query(text, values) must resolve to { rows }, with a row as an object by its columns' names.",
      { statement: statement.name },
    );
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
function translateInTransaction(error: unknown, statement: Transition, schema: SchemaName): unknown {
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

/** Libraries wrap what their driver threw, each in its own way, and may have codes of their own: the innermost is the server's. */
function wrappedState(error: unknown): string | null {
  let innermost: string | null = null;
  const layers: unknown[] = [error];
  for (const layer of layers) {
    if (typeof layer !== "object" || layer === null || layers.length > 20) continue;
    const { cause, driverError, meta, driverAdapterError, originalCode } = layer as Layer;
    innermost = sqlState({ code: originalCode }) ?? sqlState(layer) ?? innermost;
    layers.push(cause, driverError, meta, driverAdapterError);
  }
  return innermost;
}

interface Layer {
  readonly cause?: unknown;
  readonly driverError?: unknown;
  readonly meta?: unknown;
  readonly driverAdapterError?: unknown;
  readonly originalCode?: unknown;
}
