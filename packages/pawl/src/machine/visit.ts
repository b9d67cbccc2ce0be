import { asFinal } from "../core/retry-error.ts";
import { parseWith } from "../core/schema.ts";
import type { Context } from "../runtime/context.ts";
import type { StepContext } from "../runtime/step-context.ts";
import type { StepOptions } from "../runtime/step-options.ts";
import type { AnyStep, Definition } from "./definition.ts";
import type { NamedOutcome, RecordedOutcome } from "./outcome.ts";
import { createOutcomes, readOutcome } from "./outcomes.ts";
import type { Position } from "./position.ts";
import { assertState, initialState, type State } from "./state.ts";
import { createWake } from "./wake.ts";

/** Asks for one visit to a step, and answers how it came out, once that is recorded. */
export type Visit = (ctx: Context, step: AnyStep, position: Position) => Promise<RecordedOutcome>;

export function createVisit(definition: Definition): Visit {
  const outcomes = createOutcomes(definition);

  /** What the first visit starts with may be another each time it is made: so it is part of the visit's patch. */
  const stateAt = async ({ state }: Position): Promise<State> => state ?? initialState(definition.state);

  /** What cannot be kept is refused here, in the step, so that it is its failure and no record. */
  const check = async (outcome: NamedOutcome, found: State, { state }: Position): Promise<NamedOutcome> => {
    if (outcome.kind !== "complete") {
      await assertState(definition.state, { ...found, ...outcome.patch });
      return state === null ? { ...outcome, patch: { ...found, ...outcome.patch } } : outcome;
    }
    if (definition.output === undefined) return outcome;
    const what = `output of machine ${definition.name}`;
    return { kind: "complete", output: await parseWith(definition.output, outcome.output, what) };
  };

  const optionsOf = (step: AnyStep, position: Position): StepOptions<RecordedOutcome> => {
    const { timeout, undo, undoRetry, onCrash } = step;
    return {
      retry: step.retry ?? definition.retry ?? {},
      publish: (outcome) => shownBy(outcome, position),
      ...(timeout !== undefined && { timeout }),
      ...(undoRetry !== undefined && { undoRetry }),
      ...(onCrash !== undefined && { onCrash }),
      ...(undo !== undefined && {
        async undo(outcome: RecordedOutcome | undefined, context) {
          const patch = outcome === undefined || outcome.kind === "complete" ? {} : outcome.patch;
          const state = { ...(await stateAt(position)), ...patch };
          await undo({ ...context, input: position.input, state });
        },
      }),
    };
  };

  return (ctx, step, position) => {
    const { input, cause, visits, step: name } = position;
    const now = ctx.now();
    const call = async (given: StepContext): Promise<RecordedOutcome> => {
      const state = await stateAt(position);
      const wake = createWake(cause, name, given.attempt > 1);
      const handler = {
        ...given,
        ...outcomes,
        input,
        state,
        step: name,
        wake,
        now,
        visit: visits[name] ?? 1,
      };
      const returned: unknown = await step.run(handler);
      try {
        const outcome = await check(readOutcome(name, step.next, returned), state, position);
        return step.undo === undefined ? outcome : { ...outcome, hasUndo: true };
      } catch (error) {
        // The handler has come to its end: calling it again would do it all again, for the same answer.
        throw asFinal(error);
      }
    };
    return ctx.step(name, call, optionsOf(step, position));
  };
}

/** Shows with the step's record what it has changed. The step is the same until the wait that it asked for is over. */
function shownBy(
  outcome: RecordedOutcome,
  { step, state }: Position,
): Partial<Readonly<Record<"step" | "state", unknown>>> {
  if (outcome.kind === "complete") return {};
  const isPatched = state === null || Object.keys(outcome.patch).length > 0;
  return {
    ...(outcome.kind === "next" && outcome.to !== step && { step: outcome.to }),
    ...(isPatched && { state: { ...state, ...outcome.patch } }),
  };
}
