import type {
  AnswerRecord,
  PublishedRecord,
  Question,
  StreamPage,
  StreamPlace,
} from "../../store/showing.ts";
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

export const readStream = transition(
  "read_stream",
  `select is_ended, position, step, attempt, is_first, is_closing, data, notes, at_ms
     from {schema}.read_stream_v1($1, $2, $3, $4, $5)`,
);

export const findWritten = transition(
  "find_written",
  "select has_news from {schema}.find_written_v1($1, $2, $3, $4)",
);

export const lastPositions = transition(
  "last_positions",
  "select name, position from {schema}.last_positions_v1($1, $2, $3)",
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

/** The first has no position and tells of the run, the others are items. */
export interface StreamRow extends Row {
  readonly is_ended: boolean | null;
  readonly position: number | null;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly is_first: boolean | null;
  readonly is_closing: boolean | null;
  readonly data: string | null;
  readonly notes: string | null;
  readonly at_ms: number | null;
}

export interface WrittenRow extends Row {
  readonly has_news: boolean;
}

export interface PositionRow extends Row {
  readonly name: string;
  readonly position: number;
}

export function decodeStream(rows: readonly StreamRow[]): StreamPage | null {
  const ofRun = rows.find(({ position }) => position === null);
  if (ofRun === undefined) return null;
  const items = rows.flatMap((row) =>
    row.position === null
      ? []
      : {
          position: row.position,
          data: payloadOf(row.data, row.notes),
          step: row.step,
          attempt: row.attempt,
          isFirst: row.is_first === true,
          isClosing: row.is_closing === true,
          at: row.at_ms ?? 0,
        },
  );
  return { items, isEnded: ofRun.is_ended === true };
}

export function writtenValues(shard: number, places: readonly StreamPlace[]): readonly unknown[] {
  return [
    shard,
    column(places, ({ runId }) => runId),
    column(places, ({ name }) => name),
    column(places, ({ after }) => after),
  ];
}
