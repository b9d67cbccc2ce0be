import type { Look } from "../../store/lease.ts";
import type { Message, Topic } from "../../store/message.ts";
import { column, payloadOf } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";
import { inOrder, leaseValues } from "./holder-calls.ts";

/** See migrations/0004_hold.sql. */
export const readInbox = transition(
  "read_inbox",
  `select run_id, message_id, topic, name, data, notes, sent_ms, sent_to
     from {schema}.read_inbox_v1($1, $2, $3, $4, $5)`,
);

export interface MessageRow extends Row {
  readonly run_id: string;
  readonly message_id: string | null;
  readonly topic: Topic;
  readonly name: string | null;
  readonly data: string | null;
  readonly notes: string | null;
  readonly sent_ms: number;
  readonly sent_to: string | null;
}

export function inboxValues(shard: number, given: readonly Look[]): readonly unknown[] {
  const looks = inOrder(given);
  return [
    ...leaseValues(
      shard,
      looks.map(({ lease }) => lease),
    ),
    column(looks, ({ look }) => look),
  ];
}

/** Null for a run whose lease is gone. */
export function decodeInboxes(
  looks: readonly Look[],
  rows: readonly MessageRow[],
): readonly (readonly Message[] | null)[] {
  const inboxes = new Map<string, Message[]>();
  for (const row of rows) {
    if (row.message_id === null) inboxes.set(row.run_id, []);
    else inboxes.get(row.run_id)?.push(decodeMessage(row.message_id, row));
  }
  return looks.map(({ lease }) => inboxes.get(lease.runId) ?? null);
}

export function decodeMessage(id: string, row: MessageRow): Message {
  return {
    id,
    topic: row.topic,
    name: row.name,
    data: payloadOf(row.data, row.notes),
    sentAt: row.sent_ms,
    ...(row.sent_to !== null && { sentTo: row.sent_to }),
  };
}
