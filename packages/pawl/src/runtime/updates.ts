import { PawlError } from "../core/error.ts";
import type { Log } from "../core/log.ts";
import { assertName } from "../core/name.ts";
import { placeOfEvent, placeOfMessage } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { updateName } from "../core/request-key.ts";
import { parseWith } from "../core/schema.ts";
import { writeAnswered, writeReceived, writeUnanswered, type ReceivedUpdate } from "../core/update.ts";
import { schemaOf, type UpdateSchemas } from "../core/workflow-ref.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Message } from "../store/message.ts";
import type { Context } from "./context.ts";
import type { Holding } from "./holding.ts";
import type { Inbox } from "./inbox.ts";
import type { AnswerRequest, UpdateRequest } from "./request.ts";
import type { Requests } from "./requests.ts";
import type { Scope } from "./scope.ts";

type Handler = (payload: unknown, ctx: Context) => unknown;

/** The handlers that a run's code has registered, and what they are at. */
export interface UpdateHandlers {
  /**
   * Calls the handler for each update of this name, in the order sent, each in a scope of its own.
   * @throws {PawlError} `INVALID_NAME`, `INVALID_OPTION`
   */
  register(name: string, handler: Handler, scope: Scope, contextIn: (scope: Scope) => Context): void;
  /** Receives nothing more, and resolves once every update that was received is answered. */
  finished(): Promise<void>;
}

export interface HandlersParts {
  readonly schemas: UpdateSchemas | null;
  readonly payloads: Payloads;
  /** Gives up the waits that nothing has answered, and says whether others are left. */
  readonly withdraw: () => boolean;
}

export function createUpdateHandlers({ schemas, payloads, withdraw }: HandlersParts): UpdateHandlers {
  const names = new Set<string>();
  let inProgress = 0;
  let isClosing = false;
  let noteChange = (): void => {};

  const answer = async (name: string, call: () => unknown): Promise<AnswerRequest["answer"]> => {
    const what = `answer to update "${name}"`;
    try {
      const schema = schemaOf(schemas, "update", name)?.output;
      const returned = await call();
      const output = schema === undefined ? returned : await parseWith(schema, returned, what);
      return { output: payloads.write(output, `The ${what}`) };
    } catch (error) {
      return { error };
    }
  };

  const handle = async (
    name: string,
    key: string,
    { id, payload }: ReceivedUpdate,
    handler: Handler,
    scope: Scope,
    ctx: Context,
  ): Promise<void> => {
    inProgress += 1;
    const said = await answer(name, () => handler(payload, ctx));
    // A run that is told to stop answers nothing more.
    await scope.ask({ family: "answer", key, messageId: id, answer: said }).catch(() => {});
    inProgress -= 1;
    noteChange();
  };

  const serve = async (
    name: string,
    handler: Handler,
    scope: Scope,
    contextIn: (scope: Scope) => Context,
  ): Promise<void> => {
    const schema = schemaOf(schemas, "update", name)?.input ?? null;
    while (!isClosing) {
      const key = scope.nextKey("update", updateName(name));
      const received = (await scope.ask({ family: "update", key, update: name, schema })) as ReceivedUpdate;
      void handle(name, key, received, handler, scope, contextIn(scope.ofHandler(updateName(name))));
    }
  };

  return {
    register(name, handler, scope, contextIn) {
      assertName("update", name);
      schemaOf(schemas, "update", name);
      if (typeof handler !== "function")
        throw new PawlError("INVALID_OPTION", `onUpdate needs a function to call for update "${name}".`);
      if (names.has(name))
        throw new PawlError("INVALID_OPTION", `The update "${name}" has a handler already: each has one.`);
      names.add(name);
      // Rejected when the run is told to stop, or when the branch of a race that it is in has lost.
      serve(name, handler, scope, contextIn).catch(() => {
        names.delete(name);
        noteChange();
      });
    },
    async finished() {
      isClosing = true;
      while (withdraw() || inProgress > 0) {
        await new Promise<void>((resolve) => {
          noteChange = resolve;
        });
      }
    },
  };
}

export interface ReceivingParts {
  readonly claimed: ClaimedRun;
  readonly holding: Holding;
  readonly inbox: Inbox;
  readonly log: Log;
  readonly payloads: Payloads;
}

/**
 * Gives an update to the handler that waits for it. One that its schema refuses is answered at once: the code does not see it,
 * and those behind it are not held up.
 * @throws {PawlError} where it cannot be read here: it stays unread
 */
export async function receiveUpdate(
  message: Message,
  wait: UpdateRequest,
  { claimed, holding, inbox, log, payloads }: ReceivingParts,
  requests: Requests,
): Promise<void> {
  const { runId } = claimed;
  const { update, schema, key } = wait;
  const fact = { kind: "update_received", name: key } as const;
  const place = placeOfEvent(runId, fact);
  const sentTo = placeOfMessage(message.sentTo ?? runId, message.topic);
  const payload = schema === null ? undefined : payloads.decode(message.data, sentTo);
  let written = message.data;
  try {
    const what = `update "${update}"`;
    if (schema !== null) written = payloads.write(await parseWith(schema, payload, what), `The ${what}`);
  } catch (error) {
    log.warn(`An update "${update}" was refused.`, { messageId: message.id, error });
    const refusal = { kind: "update_answered", name: null } as const;
    const data = writeUnanswered("refused", payloads.encodeError(error, placeOfEvent(runId, refusal)));
    holding.add({ ...refusal, data, takes: inbox.take(message) });
    return;
  }
  const sealed = schema === null ? payloads.move(written, sentTo, place) : payloads.seal(written, place);
  requests.close(wait);
  holding.add({ ...fact, data: writeReceived(message.id, sealed), takes: inbox.take(message) });
}

/** Records what a handler returned, or threw; nothing but that record answers the request. */
export function answerUpdate(
  { key, messageId, answer }: AnswerRequest,
  { claimed, holding, payloads }: Pick<ReceivingParts, "claimed" | "holding" | "payloads">,
): void {
  const fact = { kind: "update_answered", name: key } as const;
  const place = placeOfEvent(claimed.runId, fact);
  const data =
    "error" in answer
      ? writeUnanswered("failed", payloads.encodeError(answer.error, place))
      : writeAnswered(payloads.seal(answer.output, place));
  holding.add({ ...fact, data, takes: messageId });
}
