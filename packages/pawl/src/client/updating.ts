import { parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import { checkDuration, checkName, checkOptions } from "../core/options.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { revive } from "../core/recorded-error.ts";
import { updateName } from "../core/request-key.ts";
import { parseWith } from "../core/schema.ts";
import type { Timers } from "../core/timers.ts";
import { readAnswer } from "../core/update.ts";
import { schemaOf, type WorkflowRef } from "../core/workflow-ref.ts";
import type { AnswerRecord, Question } from "../store/showing.ts";
import type { Connection } from "./connection.ts";
import { ended } from "./run-id.ts";
import type { Tell } from "./telling.ts";
import { createWatch, type WatchSeams } from "./watch.ts";

/** What `update` takes after the payload. */
export interface UpdateOptions {
  /** How long to wait for the answer. The run may still get the update afterwards. Default: for ever. */
  readonly timeout?: Duration;
  /** Repeated calls with one key are one update, and get the same answer. Default: none, every call sends one. */
  readonly idempotencyKey?: string;
}

/** Sends updates to runs, and waits for their answers. */
export interface Updating {
  update(
    runId: RunId,
    name: string,
    payload: unknown,
    options?: UpdateOptions,
    workflow?: WorkflowRef,
  ): Promise<unknown>;
  close(): Promise<void>;
}

export function createUpdating(
  seams: WatchSeams & { readonly timers: Timers },
  { payloads, store, call }: Connection,
  tell: Tell,
): Updating {
  const answers = createWatch<Question, AnswerRecord>(seams, {
    name: "look for answers to updates",
    awaited: "the answer to an update",
    hears: ["answered", "ended"],
    keyOf: ({ messageId }) => messageId,
    runOf: ({ runId }) => runId,
    async look(questions) {
      const records = await seams.store.getAnswers(questions);
      const news = new Map<string, AnswerRecord>();
      for (const [place, record] of records.entries()) {
        const messageId = questions[place]?.messageId;
        if (messageId !== undefined && (record.answer !== null || record.isEnded))
          news.set(messageId, record);
      }
      return news;
    },
  });

  const send = async (
    runId: RunId,
    name: string,
    payload: unknown,
    idempotencyKey: string | undefined,
    signal: AbortSignal,
  ): Promise<unknown> => {
    const topic = updateName(name);
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    const { id: messageId, answer, runId: toldId } = await tell(runId, topic, payload, key);
    if (answer === "ended") throw ended(runId, "has ended and takes no more updates");
    const { record, at } = await awaitAnswer(
      { runId: toldId, messageId, idempotencyKey: idempotencyKey ?? null },
      signal,
    );
    if (record.topic !== null && record.topic !== topic)
      throw new PawlError(
        "KEY_CONFLICT",
        `The idempotency key "${idempotencyKey}" belongs to another message to run ${runId}: ${record.topic}.`,
        { runId, idempotencyKey, topic: record.topic },
      );
    if (record.answer === null || record.answer.data === null)
      throw ended(runId, `ended before it answered update "${name}"`);
    return answerOf(at, name, record.answer.name, record.answer.data, payloads);
  };

  /** A run that goes on as another takes what it has not read along. */
  const awaitAnswer = async (
    question: Question,
    signal: AbortSignal,
  ): Promise<{ readonly record: AnswerRecord; readonly at: RunId }> => {
    for (let at = question.runId; ;) {
      const record = await answers.wait({ ...question, runId: at }, signal);
      const next =
        record.answer === null ? ((await call(() => store.getRun(at)))?.continuedAs ?? null) : null;
      if (next === null) return { record, at };
      at = next;
    }
  };

  return {
    async update(runId, name, payload, options = {}, workflow) {
      assertName("update", name);
      const { timeout, idempotencyKey } = checkOptions("update", options, {
        timeout: checkDuration,
        idempotencyKey: checkName,
      });
      const declared = schemaOf(workflow?.updateSchemas, "update", name);
      // The run parses what it receives, whoever sent it; this only tells the sender early.
      if (declared !== null) await parseWith(declared.input, payload, `update "${name}"`);
      const waiting = new AbortController();
      const sent = send(runId, name, payload, idempotencyKey, waiting.signal);
      if (timeout === undefined) return sent;
      const late = new Promise<never>((_, reject) => {
        waiting.signal.addEventListener("abort", () => reject(waiting.signal.reason as Error));
      });
      const stop = seams.timers.after(parseDuration(timeout), () => {
        const message = `Run ${runId} did not answer update "${name}" in time. It may still do what it was asked for.`;
        waiting.abort(new PawlError("UPDATE_TIMED_OUT", message, { runId, name }));
      });
      return Promise.race([sent, late]).finally(stop);
    },
    close: () => answers.close(),
  };
}

function answerOf(
  runId: RunId,
  name: string,
  factName: string | null,
  data: NonNullable<NonNullable<AnswerRecord["answer"]>["data"]>,
  payloads: Payloads,
): unknown {
  const said = readAnswer(data, placeOfEvent(runId, { kind: "update_answered", name: factName }), payloads);
  if (said.status === "answered") return said.output;
  const cause = revive(said.error);
  const { message } = said.error;
  if (said.status === "refused") throw new PawlError("INVALID_PAYLOAD", message, { runId, name }, { cause });
  throw new PawlError(
    "UPDATE_FAILED",
    `Update "${name}" of run ${runId} failed: ${message}`,
    { runId, name },
    { cause },
  );
}
