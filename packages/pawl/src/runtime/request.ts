import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { Payload } from "../core/json.ts";
import type { Family } from "../core/request-key.ts";
import type { NewRun } from "../store/run-record.ts";
import type { StepContext } from "./step-context.ts";

/** When a timer fires: this long after it is recorded, or at this instant of the store's clock. */
export type TimerTerms = { readonly delayMs: number } | { readonly dueAt: number };

/**
 * - `held`: asked for, nothing done. It is issued once every record has been delivered.
 * - `issued`: a step runs, a timer is set, a child is started, a signal is waited for.
 * - `answering`: its answer is on the way into the history; no other can win.
 * - `settled`: the code has its answer.
 */
type RequestState = "held" | "issued" | "answering" | "settled";

interface RequestBase {
  readonly family: Family;
  readonly key: string;
  readonly promise: Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  state: RequestState;
}

export interface StepRequest extends RequestBase {
  readonly family: "step";
  readonly call: (step: StepContext) => unknown;
}

export interface SleepRequest extends RequestBase {
  readonly family: "sleep";
  readonly timer: TimerTerms;
  /** Once the timer is recorded. */
  dueAt: number | null;
}

export interface WaitRequest extends RequestBase {
  readonly family: "wait";
  readonly signal: string;
  readonly schema: StandardSchemaV1 | null;
  readonly timer: TimerTerms | null;
  dueAt: number | null;
}

export interface ChildRequest extends RequestBase {
  readonly family: "child";
  readonly child: Pick<NewRun, "workflow" | "version" | "queue" | "priority" | "input" | "isRaw"> & {
    readonly timeoutMs: number | null;
  };
  /** Once it is started. */
  childId: string | null;
}

/** Answered as soon as it is recorded. */
export interface PublishRequest extends RequestBase {
  readonly family: "publish";
  /** Written, not yet sealed. */
  readonly value: Payload | null;
}

/** A handler waits for its next update. In the background: the code does not await it. */
export interface UpdateRequest extends RequestBase {
  readonly family: "update";
  readonly update: string;
  readonly schema: StandardSchemaV1 | null;
}

/** What a handler has returned, or thrown. Answered as soon as it is recorded. */
export interface AnswerRequest extends RequestBase {
  readonly family: "answer";
  readonly messageId: string;
  readonly answer: { readonly output: Payload | null } | { readonly error: unknown };
}

/** Something to write to a stream, or its closing. Answered as soon as it is recorded. */
export interface StreamRequest extends RequestBase {
  readonly family: "stream";
  readonly stream: string;
  /** Written, not yet sealed. */
  readonly value: Payload | null;
  readonly isClosing: boolean;
}

export type Request =
  | StepRequest
  | SleepRequest
  | WaitRequest
  | ChildRequest
  | PublishRequest
  | UpdateRequest
  | AnswerRequest
  | StreamRequest;

type Terms<R> = R extends Request
  ? Omit<R, Exclude<keyof RequestBase, "family" | "key"> | "dueAt" | "childId">
  : never;

/** What a request says of itself. */
export type RequestTerms = Terms<Request>;

export function createRequest(terms: RequestTerms): Request {
  let resolve: (value: unknown) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<unknown>((settleWith, failWith) => {
    resolve = settleWith;
    reject = failWith;
  });
  const open = { promise, resolve, reject, state: "held", dueAt: null, childId: null };
  return { ...terms, ...open } as Request;
}
