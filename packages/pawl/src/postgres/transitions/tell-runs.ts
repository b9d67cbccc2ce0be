import type { NewMessage, TellAnswer } from "../../store/message.ts";
import { column, sizeOfPayload, sparseColumn } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0005_tell.sql. */
export const tellRuns = transition(
  "tell_runs",
  `select message_id, outcome
     from {schema}.tell_runs_v1($1, $2, $3, $4, $5, $6, $7)`,
);

/** See migrations/0005_tell.sql. */
export const wakeTold = transition("wake_told", "select {schema}.wake_told_v1($1, $2)");

interface ToldRow extends Row {
  readonly message_id: string;
  readonly outcome: TellAnswer;
}

export function tellValues(shard: number, messages: readonly NewMessage[]): readonly unknown[] {
  return [
    shard,
    column(messages, (message) => message.id),
    column(messages, (message) => message.runId),
    column(messages, (message) => message.topic),
    sparseColumn(messages, (message) => message.data?.json),
    sparseColumn(messages, (message) => message.data?.notes),
    sparseColumn(messages, (message) => message.idempotencyKey),
  ];
}

export function decodeTold(messages: readonly NewMessage[], rows: readonly ToldRow[]): readonly TellAnswer[] {
  const answers = new Map(rows.map((row) => [row.message_id, row.outcome]));
  return messages.map((message) => answers.get(message.id) ?? "missing");
}

export function sizeOfMessage(message: NewMessage): number {
  return 120 + sizeOfPayload(message.data);
}
