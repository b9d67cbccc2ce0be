/** How a step came out, as it is recorded: what it changes, and where the machine goes. SQL shows it as the step's result. */
export type RecordedOutcome = NamedOutcome & {
  /** The step had an undo: the run that did it must be the one that undoes it. */
  readonly hasUndo?: true;
};

/** How a step came out. */
export type NamedOutcome =
  | { readonly kind: "next"; readonly to: string; readonly patch: Patch }
  | { readonly kind: "sleep"; readonly until: Date; readonly to: string; readonly patch: Patch }
  | {
      readonly kind: "wait";
      readonly signal: string;
      readonly to: string;
      readonly timeoutMs: number | null;
      readonly onTimeout: string | null;
      readonly patch: Patch;
    }
  | { readonly kind: "complete"; readonly output: unknown };

/** Replaces these keys of the state. */
export type Patch = Readonly<Record<string, unknown>>;

declare const outcome: unique symbol;

/** What a handler returns: made by `next`, `complete`, `sleepUntil`, `waitForSignal` or `fail` of its argument. */
export interface Outcome {
  /** Never there: tells an outcome from a patch. */
  readonly [outcome]: true;
}

export type Made = NamedOutcome | { readonly kind: "fail"; readonly error: Error };

/** An outcome inside: nothing else that a handler may return is an instance of it. */
export class MadeOutcome {
  readonly #made: Made;

  constructor(made: Made) {
    this.#made = made;
  }

  /** What is to be recorded. @throws the error it fails with */
  named(): NamedOutcome {
    if (this.#made.kind === "fail") throw this.#made.error;
    return this.#made;
  }
}
