import { shardOf } from "../../core/ids.ts";
import type { SignalOrStart, SignalOrStartAnswer } from "../../store/signal-or-start.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";
import { runsJson } from "./create-runs.ts";

/** See migrations/0014_signal_or_start.sql. */
export const signalOrStart = transition(
  "signal_or_start",
  `select outcome, owner_id, told
     from {schema}.signal_or_start_v1($1, $2::json -> 0, $3, $4, $5, $6, $7, $8)`,
);

/** Only inserts and notifies. See migrations/0014_signal_or_start.sql. */
export const signalOrStartInTransaction = transition(
  "signal_or_start_in_transaction",
  `select {schema}.signal_or_start_in_transaction_v1(
     $1::text::smallint, $2::text::json -> 0, $3::text::uuid, $4::text::uuid, $5::text, $6::text, $7::text, $8::text) as answer`,
);

export interface SignalOrStartRow extends Row {
  readonly outcome: SignalOrStartAnswer["kind"];
  readonly owner_id: string;
  readonly told: SignalOrStartAnswer["told"];
}

export function signalOrStartValues({ run, message, boundTo }: SignalOrStart): readonly (string | null)[] {
  const { id, topic, data, idempotencyKey } = message;
  const shard = String(shardOf(run.id));
  return [
    shard,
    runsJson([run]),
    boundTo,
    id,
    topic,
    data?.json ?? null,
    data?.notes ?? null,
    idempotencyKey,
  ];
}

export function decodeSignalOrStart({ outcome, owner_id, told }: SignalOrStartRow): SignalOrStartAnswer {
  return { kind: outcome, id: owner_id, told };
}
