import type { StandardSchemaV1 } from "@standard-schema/spec";
import { longestDurationMs, parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { isDate, latestInstant } from "../core/instant.ts";
import type { Log } from "../core/log.ts";
import { assertName } from "../core/name.ts";
import {
  checkDuration,
  checkFlag,
  checkInteger,
  checkName,
  checkOptions,
  checkTags,
} from "../core/options.ts";
import type { Payloads } from "../core/payloads.ts";
import { closeName, publishName, sleepName, streamName, waitName } from "../core/request-key.ts";
import { parseWith } from "../core/schema.ts";
import type { SeededRandom } from "../core/seeded-random.ts";
import {
  assertWorkflow,
  schemaOf,
  type PublishedSchemas,
  type SignalSchemas,
  type WorkflowRef,
} from "../core/workflow-ref.ts";
import { earliest } from "./agenda.ts";
import { createBranching } from "./branching.ts";
import type {
  CallOptions,
  ChildHandle,
  Context,
  RunIdentity,
  StartChildOptions,
  StreamWriter,
  TimeoutOption,
} from "./context.ts";
import { readContinuation, type ContinuationTerms, type ContinueOptions } from "./continue-as.ts";
import type { Branch, CallStanding, ChildTerms, TimerTerms } from "./request.ts";
import type { Scope } from "./scope.ts";
import type { StepContext } from "./step-context.ts";
import { readStepOptions, type StepOptions } from "./step-options.ts";
import {
  readTransactionTerms,
  type TransactionOptions,
  type TransactionTerms,
} from "./transaction-options.ts";
import type { Transact } from "./transactions.ts";
import type { UpdateHandlers } from "./updates.ts";

export interface ContextParts {
  readonly run: RunIdentity;
  readonly signalSchemas: SignalSchemas | null;
  readonly publishedSchemas: PublishedSchemas | null;
  readonly log: Log;
  readonly random: () => SeededRandom;
  readonly now: () => number;
  readonly patch: (id: string) => boolean;
  /** The workflow whose code this is. */
  readonly workflow: WorkflowRef;
  /** Ends the code here. */
  readonly continueAs: (terms: ContinuationTerms, branch: Branch | null) => Promise<never>;
  readonly payloads: Payloads;
  readonly adopt: (promise: Promise<unknown>, branch: Branch) => boolean;
  readonly withdraw: (branch: Branch) => void;
  readonly updates: UpdateHandlers;
  readonly transact: Transact;
}

/** What code in this scope asks with. */
export function createContext(parts: ContextParts, scope: Scope): Context {
  const { ask, nextKey } = scope;

  /** Awaits only what must be: a request is numbered and asked for in the order of the code. */
  const withChild = (
    what: "call" | "start",
    workflow: WorkflowRef,
    input: unknown,
    options: StartChildOptions,
    ask: (key: string, child: ChildTerms) => Promise<unknown>,
  ): Promise<unknown> => {
    assertWorkflow(what, workflow);
    const checks = what === "start" ? { ...childChecks, detached: checkFlag } : childChecks;
    const given = checkOptions<StartChildOptions>(what, options, checks);
    const { queue = workflow.queue, priority = 0, tags = [], detached: isDetached = false, timeout } = given;
    const { name, version, inputSchema } = workflow;
    const isRaw = workflow.isRef === true;
    const ownMs = timeout === undefined ? null : parseDelay(timeout, "timeout");
    const timeoutMs = earliest(workflow.timeoutMs, ownMs);
    const key = nextKey("child", name);
    const askWith = (parsed: unknown): Promise<unknown> => {
      const payload = parts.payloads.write(parsed, `The input of ${name}`);
      const child = { workflow: name, version, queue, priority, tags, isDetached, timeoutMs, isRaw };
      return ask(key, { ...child, input: payload });
    };
    if (inputSchema === null) return askWith(input);
    const parsed = parseWith(inputSchema, input, `input of ${name}`);
    return parsed instanceof Promise ? parsed.then(askWith) : askWith(parsed);
  };

  const start = async (
    workflow: WorkflowRef,
    input: unknown,
    options: StartChildOptions,
  ): Promise<ChildHandle> => {
    let startedAs = "";
    const id = await withChild("start", workflow, input, options, (key, child) => {
      startedAs = key;
      return ask({ family: "start", key, child });
    });
    const childId = id as RunId;
    let result: Promise<unknown> | null = null;
    /** Asked for again once it has failed: a wait that lost a race may be made anew. */
    const join = (): Promise<unknown> => {
      const joined = ask({ family: "child", key: startedAs, workflow: workflow.name, child: null, childId });
      joined.catch(() => (result = null));
      return joined;
    };
    return { id: childId, result: () => (result ??= join()) };
  };

  const publish = (key: string, value: unknown): Promise<unknown> => {
    assertName("published value", key);
    const schema = schemaOf(parts.publishedSchemas, "published value", key);
    const what = `published value "${key}"`;
    const requestKey = nextKey("publish", publishName(key));
    const askWith = (parsed: unknown): Promise<unknown> => {
      const written = parts.payloads.write(parsed, `The ${what}`);
      return ask({ family: "publish", key: requestKey, value: written });
    };
    if (schema === null) return askWith(value);
    const parsed = parseWith(schema, value, what);
    return parsed instanceof Promise ? parsed.then(askWith) : askWith(parsed);
  };

  const stream = (name: string): StreamWriter => {
    assertName("stream", name);
    const terms = { family: "stream", stream: name } as const;
    const write = (value: unknown): Promise<unknown> => {
      const key = nextKey("stream", streamName(name));
      const written = parts.payloads.write(value, `What is written to stream "${name}"`);
      return ask({ ...terms, key, value: written, isClosing: false });
    };
    const close = (): Promise<unknown> => {
      const key = nextKey("stream", closeName(name));
      return ask({ ...terms, key, value: null, isClosing: true });
    };
    return {
      write: (value) => request(() => write(value)) as Promise<void>,
      close: () => request(close) as Promise<void>,
    };
  };

  const context = {
    run: parts.run,
    log: parts.log,
    now: parts.now,
    random: () => parts.random().next(),
    uuid: () => parts.random().uuid(),
    patch(id: string) {
      assertName("patch", id);
      return parts.patch(id);
    },

    step: (name: string, call: (step: StepContext) => unknown, options?: StepOptions<never>) =>
      request(() => {
        assertName("step", name);
        if (typeof call !== "function") throw invalid(`The step "${name}" needs a function to call.`);
        const terms = readStepOptions(options);
        return ask({ family: "step", key: nextKey("step", name), call, terms });
      }),
    transaction: (name: string, work: TransactionTerms["call"], options: TransactionOptions<unknown> = {}) =>
      request(() => {
        assertName("step", name);
        const { terms, ...transaction } = readTransactionTerms(name, work, options);
        const key = nextKey("step", name);
        const call = (step: StepContext, standing: CallStanding): unknown =>
          parts.transact(key, transaction, step, standing);
        return ask({ family: "step", key, call, terms });
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
        const schema = schemaOfSignal(parts.signalSchemas, signal);
        const timer = parseTimeout(options);
        return ask({ family: "wait", key: nextKey("wait", waitName(signal)), signal, schema, timer });
      }),
    call: (workflow: WorkflowRef, input?: unknown, options: CallOptions = {}) =>
      request(() =>
        withChild("call", workflow, input, options, (key, child) =>
          ask({ family: "child", key, workflow: child.workflow, child }),
        ),
      ),
    start: (workflow: WorkflowRef, input?: unknown, options: StartChildOptions = {}) =>
      request(() => start(workflow, input, options)),
    continueAs: (input?: unknown, to: ContinueOptions | WorkflowRef = {}) =>
      request(async () => {
        const terms = await readContinuation(parts.workflow, parts.payloads, input, to);
        return parts.continueAs(terms, scope.branch);
      }),
    publish: (key: string, value: unknown) => request(() => publish(key, value)),
    stream,
    onUpdate: (name: string, handler: (payload: unknown, ctx: Context) => unknown) =>
      parts.updates.register(name, handler, scope, (inner) =>
        createContext({ ...parts, continueAs: refuseInHandler }, inner),
      ),
    ...createBranching(scope, parts, (inner) => createContext(parts, inner)),
  };
  return context satisfies Record<keyof Context, unknown> as Context;
}

/** A run goes on once its handlers are done: one that waited for that would wait for itself. */
function refuseInHandler(): Promise<never> {
  return Promise.reject(
    invalid(
      "continueAs is for the workflow's own code, not for the handler of an update: let that tell the code.",
    ),
  );
}

/** A mistake rejects, like any answer, and must not end the process where nobody awaits it. */
function request<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  let answer: Promise<Answer>;
  try {
    answer = ask();
  } catch (error) {
    answer = Promise.reject<Answer>(error);
  }
  answer.catch(() => {});
  return answer;
}

const childChecks = {
  queue: checkName,
  priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
  timeout: checkDuration,
  tags: checkTags,
};

function schemaOfSignal(schemas: SignalSchemas | null, signal: string): StandardSchemaV1 | null {
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
