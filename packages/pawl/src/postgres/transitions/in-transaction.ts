import { shardOf } from "../../core/ids.ts";
import type { NewMessage } from "../../store/message.ts";
import type { NewRun } from "../../store/run-record.ts";
import { transition } from "../transition.ts";
import { runsJson } from "./create-runs.ts";

// Every driver sends a text and reads a text in one way, and no plugin renames a column that is one word.

/** See migrations/0010_in_transaction.sql. */
export const createInTransaction = transition(
  "create_in_transaction",
  "select {schema}.create_in_transaction_v1($1::text::smallint, $2::text::json) as answer",
);

/** Only inserts and notifies. See migrations/0005_tell.sql. */
export const tellInTransaction = transition(
  "tell_in_transaction",
  `select {schema}.tell_in_transaction_v1(
     $1::text::smallint, $2::text::uuid, $3::text::uuid, $4::text, $5::text, $6::text, $7::text) as answer`,
);

export const readClockInTransaction = transition(
  "read_clock_in_transaction",
  "select floor(extract(epoch from {clock}) * 1000)::text as answer",
);

export function createInTransactionValues(runs: readonly NewRun[]): readonly string[] {
  const [first] = runs;
  return [String(first === undefined ? 0 : shardOf(first.id)), runsJson(runs)];
}

export function tellInTransactionValues(message: NewMessage): readonly (string | null)[] {
  const { id, runId, topic, data, idempotencyKey } = message;
  return [String(shardOf(runId)), id, runId, topic, data?.json ?? null, data?.notes ?? null, idempotencyKey];
}
