import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import { checkName, checkOptions, type Check } from "../core/options.ts";
import { placeOfMessage } from "../core/payload-codec.ts";
import { parseWith } from "../core/schema.ts";
import { assertTransaction, type Transaction } from "../core/transaction.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import type { NewMessage, TellAnswer, Topic } from "../store/message.ts";
import type { Chains } from "./chains.ts";
import type { Connection } from "./connection.ts";
import { assertRunId, ended, notFound } from "./run-id.ts";

/** What `signal` takes after the payload. */
export interface SignalOptions {
  /** The sender's retries with one key are one signal. Default: none, every call sends one. */
  readonly idempotencyKey?: string;
  /** A transaction of yours: the signal is sent only once it commits. Default: it is sent at once. */
  readonly tx?: Transaction;
}

/** What `cancel` takes; a text is the reason. */
export interface CancelOptions {
  /** Kept in the run's history. Default: none. */
  readonly reason?: string;
  /** A transaction of yours: the run is asked only once it commits. Default: it is asked at once. */
  readonly tx?: Transaction;
}

/** What others tell a run. */
export interface Telling {
  signal(runId: RunId, name: string, payload?: unknown, options?: SignalOptions): Promise<void>;
  cancel(runId: RunId, options?: string | CancelOptions): Promise<void>;
  pause(runId: RunId): Promise<void>;
  resume(runId: RunId): Promise<void>;
}

const longestReason = 1_000;

export const checkReason: Check = (value) =>
  typeof value === "string" && value.length <= longestReason
    ? null
    : `must be a text of at most ${longestReason} characters`;

/** Sends one message, and answers its id, which run it went to, and what became of it. @throws {PawlError} `RUN_NOT_FOUND` */
export type Tell = (
  runId: RunId,
  topic: Topic,
  data?: unknown,
  options?: SignalOptions,
) => Promise<{ readonly id: string; readonly runId: RunId; readonly answer: TellAnswer }>;

export function createTell(connection: Connection, chains: Chains): Tell {
  const { ids, payloads } = connection;
  return async (runId, topic, data, { idempotencyKey, tx } = {}) => {
    if (tx !== undefined) assertTransaction(topic === "cancel" ? "cancel" : "signal", tx);
    assertRunId(runId);
    const write = (to: RunId): NewMessage["data"] =>
      payloads.encode(data, placeOfMessage(to, topic), `The payload of ${topic}`);
    const written = write(runId);
    const place = connection.placeOf(tx);
    await place.learn();
    const message = { id: ids.next(), topic, idempotencyKey: idempotencyKey ?? null };
    let sentTo = runId;
    const send = (to: RunId): Promise<TellAnswer> => {
      sentTo = to;
      return place.tell({ ...message, runId: to, data: to === runId ? written : write(to) });
    };
    // Inside a transaction the database follows by itself.
    const isOver = (answer: TellAnswer): boolean => answer === "ended" && tx === undefined;
    const answer = await chains.follow(runId, send, isOver);
    if (answer === "missing") throw notFound(runId);
    return { id: message.id, runId: sentTo, answer };
  };
}

export function createTelling(tell: Tell): Telling {
  const tellLive = async (...args: Parameters<Tell>): Promise<void> => {
    if ((await tell(...args)).answer === "ended")
      throw ended(args[0], "has ended and takes no more messages");
  };

  return {
    async signal(runId, name, payload, options = {}) {
      assertName("signal", name);
      const given = checkOptions("signal", options, { idempotencyKey: checkName, tx: () => null });
      await tellLive(runId, `signal:${name}`, payload, given);
    },
    async cancel(runId, options = {}) {
      const given = typeof options === "string" ? { reason: options } : options;
      const { reason, tx } = checkOptions<CancelOptions>("cancel", given, {
        reason: checkReason,
        tx: () => null,
      });
      await tell(runId, "cancel", { reason: reason ?? null }, tx === undefined ? {} : { tx });
    },
    pause: (runId) => tellLive(runId, "pause"),
    resume: (runId) => tellLive(runId, "resume"),
  };
}

/** The run parses what it receives, whoever sent it; this only tells the sender early. */
export async function checkSignal(
  schemas: SignalSchemas | null,
  name: string,
  payload: unknown,
): Promise<void> {
  if (schemas === null) return;
  const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
  if (schema === undefined) {
    throw new PawlError("INVALID_NAME", `The workflow declares no signal "${name}".`, {
      name,
      known: Object.keys(schemas),
    });
  }
  await parseWith(schema, payload, `signal "${name}"`);
}
