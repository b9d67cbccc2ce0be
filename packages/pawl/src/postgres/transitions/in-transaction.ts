import { shardOf } from "../../core/ids.ts";
import type { FactsWithin } from "../../store/holder-transactions.ts";
import type { Lease } from "../../store/lease.ts";
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

/** See migrations/0015_transaction.sql. */
export const openTransaction = transition(
  "open_transaction",
  `select {schema}.open_transaction_v1(
     $1::text, $2::text::smallint, $3::text::uuid, $4::text::uuid, $5::text::integer, $6::text::interval) as answer`,
);

/** See migrations/0015_transaction.sql. */
export const recordInTransaction = transition(
  "record_in_transaction",
  `select {schema}.record_in_transaction_v1(
     $1::text, $2::text::smallint, $3::text::uuid, $4::text::uuid, $5::text::integer, $6::text::integer, $7::text::json,
     $8::text, $9::text, $10::text::integer, $11::text::float8, $12::text, $13::text) as answer`,
);

export function openTransactionValues(
  token: string,
  lease: Lease,
  idle: string | null,
): readonly (string | null)[] {
  return [...fenceValues(token, lease), idle];
}

export function recordInTransactionValues(
  token: string,
  lease: Lease,
  { patches, fact }: FactsWithin,
): readonly (string | null)[] {
  const { seq, kind, name, attempt, beganAt, data } = fact;
  const ids = patches.map((patch) => patch.name);
  const numbers = [attempt, beganAt].map((value) => (value === undefined ? null : String(value)));
  return [
    ...fenceValues(token, lease),
    String(seq),
    ids.length === 0 ? null : JSON.stringify(ids),
    kind,
    name,
    ...numbers,
    data?.json ?? null,
    data?.notes ?? null,
  ];
}

function fenceValues(token: string, { runId, epoch, workerId }: Lease): readonly string[] {
  return [token, String(shardOf(runId)), workerId, runId, String(epoch)];
}
