import type { StandardSchemaV1 } from "@standard-schema/spec";
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

export type Request = StepRequest | SleepRequest | WaitRequest | ChildRequest;

type Terms<R> = R extends Request
  ? Omit<R, Exclude<keyof RequestBase, "family" | "key"> | "dueAt" | "childId">
  : never;

/** What a request says of itself. */
export type RequestTerms = Terms<Request>;

function ignore(): void {}

export function createRequest(terms: RequestTerms): Request {
  let resolve: (value: unknown) => void = ignore;
  let reject: (error: Error) => void = ignore;
  const promise = new Promise<unknown>((settleWith, failWith) => {
    resolve = settleWith;
    reject = failWith;
  });
  // The terms are the caller's no longer: a copy of each would be a good part of what replay costs.
  return Object.assign(terms, {
    promise,
    resolve,
    reject,
    state: "held",
    dueAt: null,
    childId: null,
  }) as Request;
}
