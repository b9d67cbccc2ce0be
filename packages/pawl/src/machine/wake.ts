import { PawlError } from "../core/error.ts";

/** Why a machine came to a step. Recorded where it goes on as another run. */
export type Cause =
  | { readonly kind: "entered" | "timer" }
  | { readonly kind: "timeout"; readonly name: string }
  | { readonly kind: "signal"; readonly name: string; readonly signal: unknown };

interface WakeOf<Kind extends string> {
  readonly kind: Kind;
  /** An attempt at this visit has failed before. What woke it stays what it was. */
  readonly isRetry: boolean;
}

/**
 * Why a handler runs. `signal` is the payload of the signal that woke it; it throws where none did, so a step that is reached
 * by one signal alone need not ask for `kind` first.
 */
export type Wake<Payloads extends object> =
  /** Another step led here by `next`, or the machine starts here. */
  | (WakeOf<"entered"> & NoSignal)
  /** The time that `sleepUntil` asked for has come. */
  | (WakeOf<"timer"> & NoSignal)
  /** The signal of this name did not come in time. */
  | (WakeOf<"timeout"> & NoSignal & { readonly name: keyof Payloads & string })
  | {
      [Name in keyof Payloads & string]: WakeOf<"signal"> & {
        readonly name: Name;
        readonly signal: Payloads[Name];
      };
    }[keyof Payloads & string];

interface NoSignal {
  /** Throws: no signal woke this step. */
  readonly signal: never;
}

export function createWake(cause: Cause, step: string, isRetry: boolean): Wake<Record<string, unknown>> {
  const wake = { ...cause, isRetry };
  if (cause.kind === "signal") return wake as Wake<Record<string, unknown>>;
  const get = (): never => {
    const message = `Step "${step}" reads wake.signal, but no signal woke it: look at wake.kind, which is "${cause.kind}".`;
    throw Object.assign(new PawlError("INVALID_OPTION", message, { step, kind: cause.kind }), {
      retryable: false,
    });
  };
  // Not enumerable: whoever copies or prints it does not ask for the signal.
  return Object.defineProperty(wake, "signal", { get }) as Wake<Record<string, unknown>>;
}
