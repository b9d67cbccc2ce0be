import type { StandardSchemaV1 } from "@standard-schema/spec";
import { longestDurationMs, parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { isDate } from "../core/instant.ts";
import type { Log } from "../core/log.ts";
import { assertName } from "../core/name.ts";
import { checkDuration, checkInteger, checkName, checkOptions } from "../core/options.ts";
import type { Payloads } from "../core/payloads.ts";
import { requestKey, sleepName, waitName, type Family } from "../core/request-key.ts";
import { parseWith } from "../core/schema.ts";
import type { SeededRandom } from "../core/seeded-random.ts";
import { assertWorkflow, type SignalSchemas, type WorkflowRef } from "../core/workflow-ref.ts";
import type { RequestTerms, TimerTerms } from "./request.ts";
import type { StepContext } from "./step-context.ts";

/** Which run the code is in. */
export interface RunIdentity {
  readonly id: RunId;
  readonly workflow: string;
  readonly version: number;
  /** Number of this execution, from 1: one more after each failed or crashed attempt. */
  readonly attempt: number;
  readonly key: string | null;
  readonly parentId: RunId | null;
}

export interface CallOptions {
  /** Default: the child workflow's own queue. */
  readonly queue?: string;
  /** Lower goes first. Default 0. */
  readonly priority?: number;
}

export interface TimeoutOption {
  /** Gives up after this long. */
  readonly timeout: Duration;
}

/**
 * What a workflow's code asks of Pawl. Every request is durable: once answered, it is answered the same way in every
 * later execution of the run. Use `Promise.all`, `race` and `allSettled` over requests as you like, but await nothing
 * else that takes time: put that into a step. Await every request: a run that returns does not wait for the others.
 */
export interface Context<Signals extends SignalSchemas = SignalSchemas> {
  readonly run: RunIdentity;
  /** Says nothing while a history is replayed. */
  readonly log: Log;
  /**
   * Calls the function and records what it returns, or throws. A recorded result is final: that step never runs again.
   * The result may be JSON, `undefined`, `bigint`, `NaN`, `-0`, a `Date`, `Map`, `Set`, `Uint8Array`, `Buffer` or `Error`,
   * nested as you like, of at most 1 MiB unless `createPawl` says otherwise. What the code gets is a copy read back from
   * the record; an error that is thrown keeps its name, message, stack, code and cause, but not its class.
   * @throws {PawlError} `INVALID_PAYLOAD` if the result cannot be recorded exactly; it is not tried again
   */
  step<T>(name: string, call: (step: StepContext) => T | Promise<T>): Promise<T>;
  /** Waits, without a process if it takes long. */
  sleep(duration: Duration): Promise<void>;
  /** Waits until this instant (a date, or ms since 1970); one in the past is over at once. */
  sleepUntil(instant: Date | number): Promise<void>;
  /** Takes the oldest signal of this name that nobody has taken; null when the timeout is over first. */
  readonly waitForSignal: WaitForSignal<Signals>;
  /**
   * Starts a child run and waits for its output.
   * @throws {PawlError} `RUN_FAILED` with the child's error as `cause`; `RUN_CANCELLED`, `RUN_TIMED_OUT`, `RUN_EXPIRED`
   */
  call<Input, Output>(workflow: WorkflowRef<Input, Output>, ...args: CallArguments<Input>): Promise<Output>;
  /** The time of the last record the code was given, in ms: use it instead of `Date.now()`. */
  now(): number;
  /** In [0, 1), the same in every execution of the run: use it instead of `Math.random()`. */
  random(): number;
  /** A uuid v4, the same in every execution of the run. */
  uuid(): string;
}

/** The input may be left out where `undefined` is one. */
type CallArguments<Input> = undefined extends Input
  ? [input?: Input, options?: CallOptions]
  : [input: Input, options?: CallOptions];

type WaitForSignal<Signals extends SignalSchemas> = string extends keyof Signals
  ? WaitForAny
  : WaitFor<Signals>;

interface WaitFor<Signals extends SignalSchemas> {
  <Name extends keyof Signals & string>(name: Name): Promise<StandardSchemaV1.InferOutput<Signals[Name]>>;
  <Name extends keyof Signals & string>(
    name: Name,
    options: TimeoutOption,
  ): Promise<StandardSchemaV1.InferOutput<Signals[Name]> | null>;
}

interface WaitForAny {
  <T = unknown>(name: string): Promise<T>;
  <T = unknown>(name: string, options: TimeoutOption): Promise<T | null>;
}

export interface ContextParts {
  readonly run: RunIdentity;
  readonly signalSchemas: SignalSchemas | null;
  readonly log: Log;
  readonly random: () => SeededRandom;
  readonly now: () => number;
  /** Registers a request at once; the promise settles when its answer is delivered. */
  readonly ask: (terms: RequestTerms) => Promise<unknown>;
  readonly payloads: Payloads;
}

const latestInstant = 8.64e15;

export function createContext(parts: ContextParts): Context {
  const nextKey = createKeys();
  const { ask } = parts;

  const call = async (workflow: WorkflowRef, input: unknown, options: CallOptions): Promise<unknown> => {
    assertWorkflow("call", workflow);
    const given = checkOptions("call", options, {
      queue: checkName,
      priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
    });
    const { queue = workflow.queue, priority = 0 } = given;
    const { name, version, timeoutMs, inputSchema } = workflow;
    const key = nextKey("child", name);
    const parsed = inputSchema === null ? input : parseWith(inputSchema, input, `input of ${name}`);
    // Awaits only what must be: a request is numbered and asked for in the order of the code.
    const isLate = inputSchema !== null && parsed instanceof Promise;
    const payload = parts.payloads.write(isLate ? await parsed : parsed, `The input of ${name}`);
    return ask({
      family: "child",
      key,
      child: {
        workflow: name,
        version,
        queue,
        priority,
        timeoutMs,
        input: payload,
        isRaw: workflow.isRef === true,
      },
    });
  };

  const context = {
    run: parts.run,
    log: parts.log,
    now: parts.now,
    random: () => parts.random().next(),
    uuid: () => parts.random().uuid(),

    step: (name: string, call: (step: StepContext) => unknown) =>
      request(() => {
        assertName("step", name);
        if (typeof call !== "function") throw invalid(`The step "${name}" needs a function to call.`);
        return ask({ family: "step", key: nextKey("step", name), call });
      }),
    sleep: (duration: Duration) =>
      request(() => {
        const timer = { delayMs: parseDelay(duration, "sleep") };
        return ask({ family: "sleep", key: nextKey("sleep", sleepName), timer });
      }),
    sleepUntil: (instant: Date | number) =>
      request(() => {
        const timer = { dueAt: parseInstant(instant) };
        return ask({ family: "sleep", key: nextKey("sleep", sleepName), timer });
      }),
    waitForSignal: (signal: string, options?: TimeoutOption) =>
      request(() => {
        assertName("signal", signal);
        const schema = schemaOf(parts.signalSchemas, signal);
        const timer = parseTimeout(options);
        return ask({ family: "wait", key: nextKey("wait", waitName(signal)), signal, schema, timer });
      }),
    call: (workflow: WorkflowRef, input?: unknown, options: CallOptions = {}) =>
      request(() => call(workflow, input, options)),
  };
  return context satisfies Record<keyof Context, unknown> as Context;
}

/**
 * Asks at once, so that requests are numbered in the order of the code. A mistake rejects, like any answer; and a
 * rejection that nobody awaits, of a request the code has lost interest in, must not end the process.
 */
function request(ask: () => Promise<unknown>): Promise<unknown> {
  const answer = (async () => ask())();
  answer.catch(() => {});
  return answer;
}

/** Numbers requests of one family and name in the order they are asked for. */
function createKeys(): (family: Family, name: string) => string {
  const counts = new Map<string, number>();
  return (family, name) => {
    const id = `${family} ${name}`;
    const occurrence = (counts.get(id) ?? 0) + 1;
    counts.set(id, occurrence);
    return requestKey([], name, occurrence);
  };
}

function schemaOf(schemas: SignalSchemas | null, signal: string): StandardSchemaV1 | null {
  if (schemas === null) return null;
  const schema = Object.hasOwn(schemas, signal) ? schemas[signal] : undefined;
  if (schema !== undefined) return schema;
  throw invalid(
    `The workflow declares no signal "${signal}": it knows ${Object.keys(schemas).join(", ") || "none"}.`,
  );
}

function parseTimeout(options: TimeoutOption | undefined): TimerTerms | null {
  if (options === undefined) return null;
  const { timeout } = checkOptions(
    "waitForSignal",
    options,
    { timeout: checkDuration },
    { required: ["timeout"] },
  );
  return { delayMs: parseDelay(timeout, "timeout") };
}

function parseDelay(duration: Duration, what: string): number {
  const delayMs = parseDuration(duration, what);
  if (delayMs > longestDurationMs) throw invalid(`The ${what} ${duration} is longer than a thousand years.`);
  return delayMs;
}

function parseInstant(instant: Date | number): number {
  const ms = isDate(instant)
    ? instant.getTime()
    : typeof instant === "number"
      ? Math.ceil(instant)
      : Number.NaN;
  if (Number.isNaN(ms) || ms > latestInstant)
    throw invalid("sleepUntil needs a valid date, or ms since 1970.");
  return Math.max(0, ms);
}

function invalid(message: string): PawlError {
  return new PawlError("INVALID_OPTION", message);
}
