import type { ParkAnswer, Parking } from "../../store/lease.ts";
import type { Message } from "../../store/message.ts";
import { column, sparseColumn } from "../columns.ts";
import { transition } from "../transition.ts";
import {
  childrenValue,
  eventValues,
  inOrder,
  knownValues,
  leaseValues,
  writtenValue,
} from "./holder-calls.ts";
import { decodeMessage, type MessageRow } from "./read-inbox.ts";

/** See migrations/0004_hold.sql. */
export const parkRuns = transition(
  "park_runs",
  `select run_id, outcome, told, seq, due_ms, now_ms, message_id, topic, name, data, notes, sent_ms, sent_to
     from {schema}.park_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
                                $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)`,
);

interface ParkedRow extends MessageRow {
  readonly outcome: ParkAnswer["outcome"] | null;
  readonly told: boolean | null;
  readonly seq: number | null;
  readonly due_ms: number | null;
  readonly now_ms: number;
}

export function parkValues(shard: number, given: readonly Parking[]): readonly unknown[] {
  const parkings = inOrder(given);
  return [
    ...leaseValues(
      shard,
      parkings.map(({ lease }) => lease),
    ),
    ...knownValues(parkings),
    column(parkings, (parking) => parking.look),
    column(parkings, (parking) => parking.lastSeq),
    column(parkings, (parking) => parking.reason),
    sparseColumn(parkings, (parking) => parking.dueAt),
    sparseColumn(parkings, (parking) => (parking.fires === null ? nothingFires : parking.fires)),
    sparseColumn(parkings, (parking) => parking.delayMs),
    column(parkings, (parking) => arrayLiteral(parking.wants)),
    column(parkings, (parking) => parking.attemptFailed),
    childrenValue(parkings),
    writtenValue(parkings),
    ...eventValues(parkings),
  ];
}

/** No request is named so. */
const nothingFires = "";

/** As Postgres writes an array in text: arrays of arrays must be of one length, so these travel as strings. */
function arrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/[\\"]/g, String.raw`\$&`)}"`).join(",")}}`;
}

/** Null for a run whose lease is gone. */
export function decodeParked(
  parkings: readonly Parking[],
  rows: readonly ParkedRow[],
): readonly (ParkAnswer | null)[] {
  const answers = new Map<string, ParkAnswer & { dueAt: Map<number, number>; messages: Message[] }>();
  for (const row of rows) {
    if (row.outcome !== null) {
      answers.set(row.run_id, {
        outcome: row.outcome,
        told: row.told === true,
        now: row.now_ms,
        dueAt: new Map(),
        messages: [],
      });
    } else if (row.message_id !== null)
      answers.get(row.run_id)?.messages.push(decodeMessage(row.message_id, row));
    else if (row.seq !== null && row.due_ms !== null) answers.get(row.run_id)?.dueAt.set(row.seq, row.due_ms);
  }
  return parkings.map(({ lease }) => answers.get(lease.runId) ?? null);
}
