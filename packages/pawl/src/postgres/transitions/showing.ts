import type { AnswerRecord, PublishedRecord, Question } from "../../store/showing.ts";
import { column, payloadOf, sparseColumn } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0012_showing.sql, as for all below. */
export const readPublished = transition(
  "read_published",
  `select key, name, data::text as data, notes::text as notes, floor(extract(epoch from at) * 1000)::float8 as at_ms
     from {schema}.read_published_v1($1, $2, $3)`,
);

export const readAnswers = transition(
  "read_answers",
  "select topic, seq, name, data, notes, is_ended from {schema}.read_answers_v1($1, $2, $3, $4)",
);

export interface PublishedRow extends Row {
  readonly key: string;
  readonly name: string;
  readonly data: string | null;
  readonly notes: string | null;
  readonly at_ms: number;
}

export function decodePublished(row: PublishedRow): PublishedRecord {
  return { key: row.key, name: row.name, data: payloadOf(row.data, row.notes), at: row.at_ms };
}

export interface AnswerRow extends Row {
  readonly topic: string | null;
  readonly seq: number | null;
  readonly name: string | null;
  readonly data: string | null;
  readonly notes: string | null;
  readonly is_ended: boolean;
}

export function answersValues(shard: number, questions: readonly Question[]): readonly unknown[] {
  return [
    shard,
    column(questions, ({ runId }) => runId),
    column(questions, ({ messageId }) => messageId),
    sparseColumn(questions, ({ idempotencyKey }) => idempotencyKey),
  ];
}

export function decodeAnswer(row: AnswerRow): AnswerRecord {
  const answer = row.seq === null ? null : { name: row.name, data: payloadOf(row.data, row.notes) };
  return { topic: row.topic, answer, isEnded: row.is_ended };
}
