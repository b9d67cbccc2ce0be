import type { StandardSchemaV1 } from "@standard-schema/spec";
import { longestDurationMs, parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import { isDate } from "../core/instant.ts";
import type { Log } from "../core/log.ts";
import { assertName } from "../core/name.ts";
import { checkDuration, checkInteger, checkName, checkOptions } from "../core/options.ts";
import type { Payloads } from "../core/payloads.ts";
import { sleepName, waitName } from "../core/request-key.ts";
import { parseWith } from "../core/schema.ts";
import type { SeededRandom } from "../core/seeded-random.ts";
import { assertWorkflow, type SignalSchemas, type WorkflowRef } from "../core/workflow-ref.ts";
import type { CallOptions, Context, RunIdentity, TimeoutOption } from "./context.ts";
import type { TimerTerms } from "./request.ts";
import type { Scope } from "./scope.ts";
import type { StepContext } from "./step-context.ts";
import {
  readTransactionTerms,
  type TransactionOptions,
  type TransactionTerms,
} from "./transaction-options.ts";
import type { Transact } from "./transactions.ts";

export interface ContextParts {
  readonly run: RunIdentity;
  readonly signalSchemas: SignalSchemas | null;
  readonly log: Log;
  readonly random: () => SeededRandom;
  readonly now: () => number;
  readonly payloads: Payloads;
  readonly transact: Transact;
}

const latestInstant = 8.64e15;

/** What code in this scope asks with. */
export function createContext(parts: ContextParts, scope: Scope): Context {
  const { ask, nextKey } = scope;

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
    transaction: (name: string, call: TransactionTerms["call"], options: TransactionOptions<unknown> = {}) =>
      request(() => {
        assertName("step", name);
        const terms = readTransactionTerms(name, call, options);
        const key = nextKey("step", name);
        return ask({ family: "step", key, call: (step) => parts.transact(key, terms, step) });
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
    scope: (name: string, call: (ctx: Context) => unknown) =>
      request(async () => {
        assertName("scope", name);
        if (typeof call !== "function") throw invalid(`The scope "${name}" needs a function to call.`);
        return call(createContext(parts, scope.inner(name)));
      }),
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
