import type { StandardSchemaV1 } from "@standard-schema/spec";
import { requestId } from "../core/fact.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { Family } from "../core/request-key.ts";
import type { NewRun } from "../store/run-record.ts";
import type { StepContext } from "./step-context.ts";
import type { StepTerms } from "./step-options.ts";

/** When a timer fires: this long after it is recorded, or at this instant of the store's clock. */
export type TimerTerms = { readonly delayMs: number } | { readonly dueAt: number };

/**
 * - `held`: asked for, nothing done. It is issued once every record has been delivered. A step that waits for its next
 *   attempt is held, too.
 * - `issued`: a step runs, a timer is set, a child is started, a signal is waited for.
 * - `answering`: its answer is on the way into the history; no other can win.
 * - `settled`: the code has its answer.
 */
type RequestState = "held" | "issued" | "answering" | "settled";

interface RequestBase {
  /** Among all of the run's. */
  readonly id: string;
  readonly family: Family;
  readonly key: string;
  readonly promise: Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  state: RequestState;
  /** The branch of a race that it belongs to. */
  branch: Branch | null;
}

/** How one call of a step's function stands with its run. */
export interface CallStanding {
  /** Whether anybody still waits for it. */
  isAwaited(): boolean;
  /** Its answer is about to come into the history, before any other; or has turned back. */
  isAhead(is: boolean): void;
}

export interface StepRequest extends RequestBase {
  readonly family: "step";
  readonly call: (step: StepContext, standing: CallStanding) => unknown;
  readonly terms: StepTerms;
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

/** What a child is started with. */
export type ChildTerms = Pick<
  NewRun,
  "workflow" | "version" | "queue" | "priority" | "input" | "isRaw" | "tags" | "isDetached" | "retry"
> & { readonly timeoutMs: number | null; readonly expiresInMs: number | null };

/** A child's start alone. */
export interface StartRequest extends RequestBase {
  readonly family: "start";
  readonly child: ChildTerms;
}

/** A child's end; its start too, unless it has a request of its own. */
export interface ChildRequest extends RequestBase {
  readonly family: "child";
  readonly workflow: string;
  /** Null: it is started already. */
  readonly child: ChildTerms | null;
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

/** The code wants an operator to look: nothing new begins until the run is resumed. */
export interface PauseRequest extends RequestBase {
  readonly family: "pause";
  /** Why, written and not yet sealed. */
  readonly reason: Payload | null;
  /** The `seq` of the fact that says so, once it is recorded. */
  pausedSeq: number | null;
}

export type Request =
  | StepRequest
  | SleepRequest
  | WaitRequest
  | StartRequest
  | ChildRequest
  | PublishRequest
  | UpdateRequest
  | AnswerRequest
  | StreamRequest
  | PauseRequest;

/** Several branches of the code of which one wins; what the others ask for is withdrawn. */
export interface Race {
  readonly branches: readonly Branch[];
}

export interface Branch {
  readonly race: Race;
  /** The branch that its race is in. */
  readonly outer: Branch | null;
  /** What it has asked for and has no answer to, races in it included. */
  readonly open: Set<Request>;
  isLost: boolean;
}

type Terms<R> = R extends Request
  ? Omit<R, Exclude<keyof RequestBase, "family" | "key"> | "dueAt" | "childId" | "pausedSeq"> &
      (R extends ChildRequest ? { readonly childId?: string } : unknown)
  : never;

/** What a request says of itself. */
export type RequestTerms = Terms<Request>;

/** What is added to the terms. */
type Settable = { -readonly [Key in keyof RequestBase]: RequestBase[Key] } & {
  dueAt: number | null;
  childId: RunId | null;
  pausedSeq: number | null;
};

function ignore(): void {}

export function createRequest(terms: RequestTerms): Request {
  let resolve: (value: unknown) => void = ignore;
  let reject: (error: Error) => void = ignore;
  const promise = new Promise<unknown>((settleWith, failWith) => {
    resolve = settleWith;
    reject = failWith;
  });
  // The terms are the caller's no longer: a copy of each would be a good part of what replay costs.
  const request = terms as unknown as Settable;
  request.id = requestId(terms);
  request.promise = promise;
  request.resolve = resolve;
  request.reject = reject;
  request.state = "held";
  request.branch = null;
  request.dueAt = null;
  request.childId ??= null;
  request.pausedSeq = null;
  // Not in a WeakMap, whose entries cost the garbage collector more than all the rest of a run with many requests.
  (promise as RequestPromise)[ownRequest] = request as unknown as Request;
  return request as unknown as Request;
}

/** A rejection that nobody awaits, of a request the code has lost interest in, does not end the process. */
export function rejectRequest({ promise, reject }: Request, error: Error): void {
  promise.catch(ignore);
  reject(error);
}

const ownRequest = Symbol("request");

interface RequestPromise extends Promise<unknown> {
  [ownRequest]?: Request;
}

/** The request that this is the promise of, if it is one. */
export function requestOf(promise: Promise<unknown>): Request | undefined {
  return (promise as RequestPromise)[ownRequest];
}
