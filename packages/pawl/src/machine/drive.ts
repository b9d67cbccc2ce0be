import { NonRetryableError } from "../core/retry-error.ts";
import type { Context } from "../runtime/context.ts";
import type { Workflow } from "../runtime/workflow.ts";
import type { Definition } from "./definition.ts";
import type { RecordedOutcome } from "./outcome.ts";
import { packPosition, unpackPosition, type Position } from "./position.ts";
import { freeze } from "./state.ts";
import { createVisit } from "./visit.ts";
import type { Cause } from "./wake.ts";

/**
 * After so many visits the machine goes on as a new run, whose history is empty. Never to be lowered: runs that are past
 * the new number would be replayed as if they had gone on.
 */
const mostVisits = 2_000;
const entered: Cause = { kind: "entered" };

/**
 * The code of a machine: a workflow's function that asks for one step after another. What a step returns says what it
 * changes and where the machine goes, and is the step's record: so there is no moment in which the one is kept and the
 * other is not.
 * @param self the workflow whose function it is
 */
export function createDriver(
  definition: Definition,
  self: () => Workflow,
): (ctx: Context, input: unknown) => Promise<unknown> {
  const { start, steps, signals } = definition;
  const visit = createVisit(definition);

  return async (ctx, given) => {
    let position: Position = freeze(unpackPosition(given)) ?? {
      input: freeze(given),
      state: null,
      step: start,
      cause: entered,
      visits: {},
    };
    // What a step changes is shown with its record. That leaves where a run begins, and where a wait leads.
    let news: readonly ("step" | "state")[] = position.state === null ? ["step"] : ["step", "state"];
    let canGoOn = true;
    for (let turn = 1; ; turn++) {
      const step = steps.get(position.step);
      if (step === undefined) return ctx.block(missing(`stands at step "${position.step}"`));
      if (turn > mostVisits && canGoOn) return goOn(ctx, position, self());
      position = arrive(position, step.limit);
      const at = position;
      const shown = news.map((key) => ctx.publish(key, at[key]));
      const [outcome] = await Promise.all([visit(ctx, step, at), ...shown]);
      if (outcome.kind === "complete") return outcome.output;
      // What an earlier run of a chain did is not undone: with something to undo, the machine stays one run.
      canGoOn &&= outcome.hasUndo !== true;
      if (outcome.kind === "wait" && signals !== undefined && !Object.hasOwn(signals, outcome.signal))
        return ctx.block(missing(`waits for signal "${outcome.signal}"`));
      const next = outcome.kind === "next" ? { step: outcome.to, cause: entered } : await wait(ctx, outcome);
      news = outcome.kind === "next" || next.step === at.step ? [] : ["step"];
      position = { ...at, ...next, state: freeze({ ...at.state, ...outcome.patch }) };
    }
  };
}

/** Counts the visit. @throws {NonRetryableError} past the step's limit */
function arrive(position: Position, limit = Infinity): Position {
  const { step, visits } = position;
  const count = (Object.hasOwn(visits, step) ? (visits[step] ?? 0) : 0) + 1;
  if (count > limit)
    throw new NonRetryableError(`The machine has come to step "${step}" more than ${limit} times.`);
  return { ...position, visits: { ...visits, [step]: count } };
}

type Waiting = Extract<RecordedOutcome, { readonly kind: "sleep" | "wait" }>;

/** Waits as the outcome says, and answers with which step the machine goes on. */
async function wait(
  ctx: Context,
  outcome: Waiting,
): Promise<{ readonly step: string; readonly cause: Cause }> {
  if (outcome.kind === "sleep") {
    await ctx.sleepUntil(outcome.until);
    return { step: outcome.to, cause: { kind: "timer" } };
  }
  const { signal: name, to, timeoutMs, onTimeout } = outcome;
  if (timeoutMs === null || onTimeout === null)
    return { step: to, cause: { kind: "signal", name, signal: freeze(await ctx.waitForSignal(name)) } };
  const first = await ctx.race({
    signal: ctx.waitForSignal(name),
    timeout: ctx.sleep(timeoutMs),
  });
  return first.winner === "timeout"
    ? { step: onTimeout, cause: { kind: "timeout", name } }
    : { step: to, cause: { kind: "signal", name, signal: freeze(first.value) } };
}

/** The position is of the machine's own making: no schema knows it. */
function goOn(ctx: Context, position: Position, self: Workflow): Promise<never> {
  return ctx.continueAs(packPosition(position) as never, { ...self, inputSchema: null });
}

function missing(what: string): string {
  return (
    `The machine ${what}, which its definition does not have. Deploy a definition that has it; one without it needs a new ` +
    "version."
  );
}
