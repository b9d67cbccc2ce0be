import type { Context } from "../../src/index.ts";
import { idle } from "./entries.ts";

/** Asks for something with one argument left open. */
type Ask = (ctx: Context, value: unknown) => unknown;

/** What the types would refuse. */
const never = (value: unknown): never => value as never;

/** Asked in a race: what is right there may take for ever. */
const briefly = (ask: Ask): Ask => {
  return async (ctx, value) => {
    const first = await ctx.race({ asked: (inner) => ask(inner, value), late: (inner) => inner.sleep(20) });
    return first.value;
  };
};

/** Every method of the context with one argument left open. */
export const requests: Readonly<Record<string, Ask>> = {
  "step(…, f)": (ctx, value) => ctx.step(never(value), () => 1),
  "step(name, …)": (ctx, value) => ctx.step("step", never(value)),
  "step(name, f, …)": (ctx, value) => ctx.step("step", () => 1, never(value)),
  "step that returns": (ctx, value) => ctx.step("result", () => value),
  "step that publishes": (ctx, value) => ctx.step("step", () => 1, { publish: () => never(value) }),
  "step that publishes a value": (ctx, value) => ctx.step("step", () => 1, { publish: () => ({ value }) }),
  "step that says how far it is": (ctx, value) => ctx.step("progress", ({ heartbeat }) => heartbeat(value)),
  "step that logs": (ctx, value) =>
    ctx.step("log", ({ log }) => {
      log.info(never(value), never(value));
      log.error("said", { value });
    }),
  "transaction(…, f)": (ctx, value) => ctx.transaction(never(value), () => 1),
  "transaction(name, …)": (ctx, value) => ctx.transaction("transaction", never(value)),
  "transaction(name, f, …)": (ctx, value) => ctx.transaction("transaction", () => 1, never(value)),
  "sleep(…)": briefly((ctx, value) => ctx.sleep(never(value))),
  "sleepUntil(…)": briefly((ctx, value) => ctx.sleepUntil(never(value))),
  "waitForSignal(…)": (ctx, value) => ctx.waitForSignal(never(value), { timeout: 0 }),
  "waitForSignal(name, …)": (ctx, value) => ctx.waitForSignal("word", never(value ?? null)),
  "publish(…, 1)": (ctx, value) => ctx.publish(never(value), 1),
  "publish(key, …)": (ctx, value) => ctx.publish("key", value),
  "stream(…)": (ctx, value) => ctx.stream(never(value)),
  "stream(name).write(…)": (ctx, value) => ctx.stream("words").write(value),
  "onUpdate(…, f)": (ctx, value) => ctx.onUpdate(never(value), () => 1),
  "onUpdate(name, …)": (ctx, value) => ctx.onUpdate("word", never(value)),
  "a step's stream(…)": (ctx, value) => ctx.step("step", ({ stream }) => void stream(never(value))),
  "a step's stream(name).write(…)": (ctx, value) =>
    ctx.step("step", ({ stream }) => stream("words").write(value)),
  "call(…)": (ctx, value) => ctx.call(never(value), never(1)),
  "call(workflow, …)": (ctx, value) => ctx.call(idle, value),
  "call(workflow, 1, …)": briefly((ctx, value) => ctx.call(idle, 1, never(value))),
  "start(…)": (ctx, value) => ctx.start(never(value), never(1)),
  "start(workflow, …)": (ctx, value) => ctx.start(idle, value),
  "start(workflow, 1, …)": (ctx, value) => ctx.start(idle, 1, never(value)),
  "map(…, items, f)": (ctx, value) => ctx.map(never(value), [1], (item) => item),
  "map(name, …, f)": (ctx, value) => ctx.map("map", never(value), () => 1),
  "map(name, items, …)": (ctx, value) => ctx.map("map", [1], never(value)),
  "map(name, items, f, …)": (ctx, value) => ctx.map("map", [1], (item) => item, never(value)),
  "race(…)": (ctx, value) => ctx.race(never(value)),
  "race({ name: … })": (ctx, value) => ctx.race({ never: never(value), now: () => 1 }),
  "race({ …: f })": (ctx, value) => ctx.race({ [typeof value === "string" ? value : "none"]: () => 1 }),
  "scope(…, f)": (ctx, value) => ctx.scope(never(value), () => 1),
  "scope(name, …)": (ctx, value) => ctx.scope("scope", never(value)),
  "patch(…)": (ctx, value) => ctx.patch(never(value)),
  // A reason that is one ends the code, or holds it up.
  "block(…)": (ctx, value) => (isReason(value) ? null : ctx.block(never(value))),
  "pause(…)": (ctx, value) => (!value || isReason(value) ? null : ctx.pause(never(value))),
  "continueAs(1, …)": (ctx, value) =>
    // What is right there ends the run.
    value === undefined || isEmpty(value) ? null : ctx.continueAs(1, never(value)),
  "log.info(…)": (ctx, value) => ctx.log.info(never(value), never(value)),
};

function isReason(value: unknown): boolean {
  return typeof value === "string" && /^[^\0\p{Surrogate}]{1,99999}$/u.test(value);
}

interface OptionsOfRequest {
  readonly names: string;
  readonly ask: Ask;
}

const retryNames = "attempts backoff initial max factor delays jitter retryIf";

/** Every option of every method of the context. */
export const optionsOfRequests: Readonly<Record<string, OptionsOfRequest>> = {
  step: {
    names: "retry timeout undo undoRetry onCrash publish",
    ask: (ctx, options) => ctx.step("step", () => 1, never(options)),
  },
  "step's retry": {
    names: retryNames,
    ask: (ctx, retry) => ctx.step("step", () => 1, { retry: never(retry) }),
  },
  "step's undoRetry": {
    names: retryNames,
    ask: (ctx, undoRetry) => ctx.step("step", () => 1, { undo: () => {}, undoRetry: never(undoRetry) }),
  },
  transaction: {
    names: "on isolation conflictAttempts retry",
    ask: (ctx, options) => ctx.transaction("transaction", () => 1, never(options)),
  },
  waitForSignal: {
    names: "timeout",
    ask: briefly((ctx, options) => ctx.waitForSignal("word", never(options))),
  },
  call: {
    names: "queue priority timeout expiresIn retry tags",
    ask: briefly((ctx, options) => ctx.call(idle, 1, never(options))),
  },
  start: {
    names: "queue priority timeout expiresIn retry tags detached",
    ask: (ctx, options) => ctx.start(idle, 1, never(options)),
  },
  map: { names: "concurrency", ask: (ctx, options) => ctx.map("map", [1], (item) => item, never(options)) },
  continueAs: {
    names: "version",
    ask: (ctx, options) =>
      Object.values(options as object).every((value) => value === undefined || isVersion(value))
        ? null
        : ctx.continueAs(1, never(options)),
  },
};

function isVersion(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value < 2 ** 31;
}

/** Whether nothing can be seen in it. */
function isEmpty(value: unknown): boolean {
  try {
    return typeof value === "object" && value !== null && Object.keys(value).length === 0;
  } catch {
    return false;
  }
}
