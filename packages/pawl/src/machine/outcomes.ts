import { parseDuration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import { isDate } from "../core/instant.ts";
import { nameFault } from "../core/name.ts";
import type { Fault } from "../core/option-problem.ts";
import { checkDuration, checkOptions, isPlain, type Check } from "../core/options.ts";
import { asFinal, NonRetryableError } from "../core/retry-error.ts";
import type { SignalSchemas } from "../core/workflow-ref.ts";
import { targetFault, type Definition } from "./definition.ts";
import type { Outcomes } from "./handler.ts";
import { MadeOutcome, type Made, type NamedOutcome, type Outcome, type Patch } from "./outcome.ts";

type AnyOutcomes = Outcomes<string, Record<string, unknown>, unknown, SignalSchemas>;

/** The functions with which handlers make outcomes. They refuse at once what cannot be: the stack shows who asked. */
export function createOutcomes({ steps, signals }: Definition): AnyOutcomes {
  const names = [...steps.keys()];

  const assertTarget = (what: string, to: unknown): void => {
    const fault = targetFault(to, names);
    if (fault !== null) throw refused(`The target of ${what} ${fault}.`);
  };

  const checkTarget: Check = (to) => targetFault(to, names);
  const waitChecks = { then: checkTarget, timeout: checkDuration, onTimeout: checkTarget, patch: () => null };

  return {
    next(to, patch) {
      assertTarget("next", to);
      return make({ kind: "next", to, patch: patchOf("next", patch) });
    },
    complete: (output?: unknown) => make({ kind: "complete", output }),
    sleepUntil(instant, to, patch) {
      assertTarget("sleepUntil", to);
      const until = new Date(isDate(instant) ? instant.getTime() : instant);
      if (Number.isNaN(until.getTime())) throw refused("sleepUntil needs a valid date, or ms since 1970.");
      return make({ kind: "sleep", until, to, patch: patchOf("sleepUntil", patch) });
    },
    waitForSignal(signal, options) {
      const fault = nameFault(signal);
      if (fault !== null) throw refused(`A signal's name ${fault}.`);
      if (signals !== undefined && !Object.hasOwn(signals, signal))
        throw refused(
          `The machine declares no signal "${signal}": it knows ${Object.keys(signals).join(", ") || "none"}.`,
        );
      const given = refusing(() => checkOptions("waitForSignal", options, waitChecks, waitRules));
      return make({
        kind: "wait",
        signal,
        to: given.then,
        timeoutMs: given.timeout === undefined ? null : parseDuration(given.timeout),
        onTimeout: given.onTimeout ?? null,
        patch: patchOf("waitForSignal", given.patch),
      });
    },
    fail(error) {
      return make({
        kind: "fail",
        error: error instanceof Error ? asFinal(error) : new NonRetryableError(error),
      });
    },
  };
}

const waitRules = {
  required: ["then"],
  rules: [
    {
      of: ["timeout", "onTimeout"],
      check: ({ timeout, onTimeout }: Readonly<Record<string, unknown>>): Fault | null =>
        (timeout === undefined) === (onTimeout === undefined)
          ? null
          : {
              kind: "wrong",
              option: "onTimeout",
              fault: 'is needed where "timeout" is given, and only there',
            },
    },
  ],
};

/** What a handler has returned, as it is to be recorded. @throws what it fails with; `INVALID_OPTION` */
export function readOutcome(step: string, next: string | undefined, returned: unknown): NamedOutcome {
  if (returned instanceof MadeOutcome) return returned.named();
  if (next === undefined)
    throw refused(
      `Step "${step}" has returned no outcome, and has no "next": return what next, complete, sleepUntil, waitForSignal or fail makes.`,
    );
  return { kind: "next", to: next, patch: patchOf(`step "${step}"`, returned) };
}

/** To its user an outcome is a thing without parts. */
function make(made: Made): Outcome {
  return new MadeOutcome(made) as unknown as Outcome;
}

function patchOf(what: string, patch: unknown): Patch {
  if (patch === undefined) return {};
  if (typeof patch === "object" && patch !== null && isPlain(patch)) return { ...patch };
  throw refused(`The patch of ${what} must be a plain object with keys of the state.`);
}

function refusing<Value>(check: () => Value): Value {
  try {
    return check();
  } catch (error) {
    throw asFinal(error);
  }
}

/** A mistake in the code: another attempt would make it again. */
function refused(message: string): PawlError {
  return Object.assign(new PawlError("INVALID_OPTION", message), { retryable: false });
}
