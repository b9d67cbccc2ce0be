import type { StandardSchemaV1 } from "@standard-schema/spec";
import { longestDurationMs, parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { isDate, latestInstant } from "../core/instant.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import { assertName } from "../core/name.ts";
import { checkDuration, checkFlag, checkOptions } from "../core/options.ts";
import type { Payloads } from "../core/payloads.ts";
import { closeName, pauseName, publishName, sleepName, streamName, waitName } from "../core/request-key.ts";
import { asFinal } from "../core/retry-error.ts";
import { createRetryPolicy } from "../core/retry.ts";
import { parseWith } from "../core/schema.ts";
import type { SeededRandom } from "../core/seeded-random.ts";
import { assertWorkflow, schemaOf, type SignalSchemas, type WorkflowRef } from "../core/workflow-ref.ts";
import { earliest } from "./agenda.ts";
import { createBranching, type BranchingParts } from "./branching.ts";
import { callChecks } from "./call-checks.ts";
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
import { madeOnUse, type Makers } from "./made-on-use.ts";
import { requestOf, type Branch, type CallStanding, type ChildTerms, type TimerTerms } from "./request.ts";
import type { Scope } from "./scope.ts";
import { Shown } from "./shown.ts";
import type { StepContext } from "./step-context.ts";
import { readStepOptions, type StepOptions, type StepTerms } from "./step-options.ts";
import {
  readTransactionTerms,
  type TransactionOptions,
  type TransactionTerms,
} from "./transaction-options.ts";
import type { Transact } from "./transactions.ts";
import type { UpdateHandlers } from "./updates.ts";
import type { Workflow } from "./workflow.ts";

/** What the contexts of one run's code are made of. */
export interface ContextParts extends BranchingParts {
  readonly run: RunIdentity;
  /** The workflow whose code this is. */
  readonly workflow: Workflow;
  readonly payloads: Payloads;
  log(): Log;
  random(): SeededRandom;
  now(): number;
  patch(id: string): boolean;
  /** Ends the code here. */
  continueAs(terms: ContinuationTerms, branch: Branch | null): Promise<never>;
  /** Ends the code here, and leaves the run to others. */
  block(reason: string, branch: Branch | null): Promise<never>;
  updates(): UpdateHandlers;
  transact: Transact;
}

/** What code in this scope asks with. */
export function createContext(parts: ContextParts, scope: Scope): Context {
  return madeOnUse(members, parts, scope);
}

const members: Makers<Context, ContextParts, Scope> = {
  run: ({ run }) => run,
  log: (parts) => parts.log(),
  now: (parts) => () => parts.now(),
  random: (parts) => () => parts.random().next(),
  uuid: (parts) => () => parts.random().uuid(),
  patch: (parts) => (id: string) => {
    assertName("patch", id);
    return parts.patch(id);
  },

  step:
    (parts, scope) => (name: string, call: (step: StepContext) => unknown, options?: StepOptions<never>) =>
      request(() => {
        assertName("step", name);
        if (typeof call !== "function") throw invalid(`The step "${name}" needs a function to call.`);
        const terms = readStepOptions(options);
        const asked = terms.publish === null ? call : withShown(parts, call, terms.publish);
        return scope.ask({ family: "step", key: scope.nextKey("step", name), call: asked, terms });
      }),
  transaction:
    (parts, scope) =>
    (name: string, work: TransactionTerms["call"], options: TransactionOptions<unknown> = {}) =>
      request(() => {
        assertName("step", name);
        const { terms, ...transaction } = readTransactionTerms(name, work, options);
        const key = scope.nextKey("step", name);
        const call = (step: StepContext, standing: CallStanding): unknown =>
          parts.transact(key, transaction, step, standing);
        return scope.ask({ family: "step", key, call, terms });
      }),
  sleep: (_parts, scope) => (duration: Duration) =>
    request(() => {
      const timer = { delayMs: parseDelay(duration, "sleep") };
      return scope.ask({ family: "sleep", key: scope.nextKey("sleep", sleepName), timer });
    }),
  sleepUntil: (_parts, scope) => (instant: Date | number) =>
    request(() => {
      const timer = { dueAt: parseInstant(instant) };
      return scope.ask({ family: "sleep", key: scope.nextKey("sleep", sleepName), timer });
    }),
  waitForSignal:
    ({ workflow }, scope) =>
    (signal: string, options?: TimeoutOption) =>
      request(() => {
        assertName("signal", signal);
        const schema = schemaOfSignal(workflow.signalSchemas, signal);
        const timer = parseTimeout(options);
        return scope.ask({
          family: "wait",
          key: scope.nextKey("wait", waitName(signal)),
          signal,
          schema,
          timer,
        });
      }),
  call:
    (parts, scope) =>
    (workflow: WorkflowRef, input?: unknown, options: CallOptions = {}) =>
      request(() =>
        withChild(parts, scope, "call", workflow, input, options, (key, child) =>
          scope.ask({ family: "child", key, workflow: child.workflow, child }),
        ),
      ),
  start:
    (parts, scope) =>
    (workflow: WorkflowRef, input?: unknown, options: StartChildOptions = {}) =>
      request(() => startChild(parts, scope, workflow, input, options)),
  continueAs:
    (parts, { branch, isOfHandler }) =>
    (input?: unknown, to: ContinueOptions | WorkflowRef = {}) =>
      request(async () => {
        // A run goes on once its handlers are done: one that waited for that would wait for itself.
        if (isOfHandler)
          throw invalid(
            "continueAs is for the workflow's own code, not for the handler of an update: let that tell the code.",
          );
        const terms = await readContinuation(parts.workflow, parts.payloads, input, to);
        return parts.continueAs(terms, branch);
      }),
  block:
    (parts, { branch }) =>
    (reason: string) =>
      request(() => {
        if (typeof reason !== "string" || reason === "") throw invalid("block needs a reason: a sentence.");
        // It is recorded: what cannot be is refused here.
        parts.payloads.write(reason, "The reason of block");
        return parts.block(reason, branch);
      }),
  publish: (parts, scope) => (key: string, value: unknown) =>
    request((): Promise<unknown> => {
      assertName("published value", key);
      const requestKey = scope.nextKey("publish", publishName(key));
      return writeShown(parts, key, value, (written) =>
        scope.ask({ family: "publish", key: requestKey, value: written }),
      );
    }),
  pause:
    ({ payloads }, scope) =>
    (reason?: string) =>
      request(() => {
        if (reason !== undefined && typeof reason !== "string")
          throw invalid("pause needs a text to say why.");
        const written = payloads.write(reason === undefined ? undefined : { reason }, "The reason");
        return scope.ask({ family: "pause", key: scope.nextKey("pause", pauseName), reason: written });
      }),
  stream: (parts, scope) => (name: string) => writeTo(name, parts, scope),
  onUpdate: (parts, scope) => (name: string, handler: (payload: unknown, ctx: Context) => unknown) =>
    parts.updates().register(name, handler, scope, (inner) => createContext(parts, inner)),
  scope: (parts, scope) => branchingOf(parts, scope).scope,
  map: (parts, scope) => branchingOf(parts, scope).map,
  race: (parts, scope) => branchingOf(parts, scope).race,
};

function branchingOf(parts: ContextParts, scope: Scope): ReturnType<typeof createBranching> {
  return createBranching(scope, parts, (inner) => createContext(parts, inner));
}

/** Awaits only what must be: a request is numbered and asked for in the order of the code. */
function withChild(
  { payloads }: ContextParts,
  scope: Scope,
  what: "call" | "start",
  workflow: WorkflowRef,
  input: unknown,
  options: StartChildOptions,
  ask: (key: string, child: ChildTerms) => Promise<unknown>,
): Promise<unknown> {
  assertWorkflow(what, workflow);
  const checks = what === "start" ? { ...callChecks, detached: checkFlag } : callChecks;
  const given = checkOptions<StartChildOptions>(what, options, checks);
  const { queue = workflow.queue, priority = 0, tags = [], detached: isDetached = false } = given;
  const { timeout, expiresIn } = given;
  const retry = given.retry === undefined ? null : createRetryPolicy(given.retry);
  const { name, version, inputSchema } = workflow;
  const isRaw = workflow.isRef === true;
  const ownMs = timeout === undefined ? null : parseDelay(timeout, "timeout");
  const timeoutMs = earliest(workflow.timeoutMs, ownMs);
  const expiresInMs = expiresIn === undefined ? null : parseDelay(expiresIn, "expiry");
  const key = scope.nextKey("child", name);
  const askWith = (parsed: unknown): Promise<unknown> => {
    const payload = payloads.write(parsed, `The input of ${name}`);
    const child = { workflow: name, version, queue, priority, tags, retry, isDetached, isRaw };
    return ask(key, { ...child, timeoutMs, expiresInMs, input: payload });
  };
  if (inputSchema === null) return askWith(input);
  const parsed = parseWith(inputSchema, input, `input of ${name}`);
  return parsed instanceof Promise ? parsed.then(askWith) : askWith(parsed);
}

async function startChild(
  parts: ContextParts,
  scope: Scope,
  workflow: WorkflowRef,
  input: unknown,
  options: StartChildOptions,
): Promise<ChildHandle> {
  let startedAs = "";
  const id = await withChild(parts, scope, "start", workflow, input, options, (key, child) => {
    startedAs = key;
    return scope.ask({ family: "start", key, child });
  });
  const childId = id as RunId;
  let result: Promise<unknown> | null = null;
  /** Asked for again once it has failed: a wait that lost a race may be made anew. */
  const join = (): Promise<unknown> => {
    const joined = scope.ask({
      family: "child",
      key: startedAs,
      workflow: workflow.name,
      child: null,
      childId,
    });
    joined.catch(() => (result = null));
    return joined;
  };
  return { id: childId, result: () => (result ??= join()) };
}

/** A value as its schema makes it, written down; at once where the schema can. */
function writeShown<Written>(
  { workflow, payloads }: ContextParts,
  key: string,
  value: unknown,
  then: (written: Payload | null) => Written,
): Written | Promise<Written> {
  assertName("published value", key);
  const schema = schemaOf(workflow.publishedSchemas, "published value", key);
  const what = `published value "${key}"`;
  const write = (parsed: unknown): Written => then(payloads.write(parsed, `The ${what}`));
  if (schema === null) return write(value);
  const parsed = parseWith(schema, value, what);
  return parsed instanceof Promise ? parsed.then(write) : write(parsed);
}

/** They share one write with the step's record. */
const mostShown = 100;

/** What a step publishes is known once it has returned. */
function withShown(
  parts: ContextParts,
  call: (step: StepContext) => unknown,
  publish: NonNullable<StepTerms["publish"]>,
): (step: StepContext) => Promise<unknown> {
  return async (step) => {
    const result = await call(step);
    try {
      const values = new Map<string, Payload | null>();
      for (const [key, value] of shownEntries(publish(result)))
        await writeShown(parts, key, value, (written) => values.set(key, written));
      return new Shown(result, values);
    } catch (error) {
      // Calling the function again would do it all again.
      throw asFinal(error);
    }
  };
}

/** @throws {PawlError} `INVALID_OPTION`, whatever the object does to those who read it */
function shownEntries(shown: unknown): readonly (readonly [string, unknown])[] {
  if (typeof shown !== "object" || shown === null)
    throw invalid("The option publish of a step must return an object: a value for each key.");
  let entries: readonly (readonly [string, unknown])[];
  try {
    entries = Object.entries(shown);
  } catch (error) {
    throw invalid("What the option publish of a step returned cannot be read.", error);
  }
  if (entries.length > mostShown)
    throw invalid(`A step publishes at most ${mostShown} values with its record.`);
  return entries;
}

function writeTo(name: string, { payloads }: ContextParts, scope: Scope): StreamWriter {
  assertName("stream", name);
  const terms = { family: "stream", stream: name } as const;
  const write = (value: unknown): Promise<unknown> => {
    const key = scope.nextKey("stream", streamName(name));
    const written = payloads.write(value, `What is written to stream "${name}"`);
    return scope.ask({ ...terms, key, value: written, isClosing: false });
  };
  const close = (): Promise<unknown> => {
    const key = scope.nextKey("stream", closeName(name));
    return scope.ask({ ...terms, key, value: null, isClosing: true });
  };
  return {
    write: (value) => request(() => write(value)) as Promise<void>,
    close: () => request(close) as Promise<void>,
  };
}

/** A mistake rejects, like any answer, and must not end the process where nobody awaits it. */
function request<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  let answer: Promise<Answer>;
  try {
    answer = ask();
  } catch (error) {
    answer = Promise.reject<Answer>(error);
  }
  // What a request returned heeds that itself.
  if (requestOf(answer) === undefined) answer.catch(() => {});
  return answer;
}

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

function invalid(message: string, cause?: unknown): PawlError {
  return new PawlError("INVALID_OPTION", message, {}, cause === undefined ? {} : { cause });
}
