/** Where a piece of a user's code belongs. */
export interface WatchedPlace {
  readonly workflow: string;
  readonly version: number;
  /** The step whose function it is; null for the workflow's own code. */
  readonly step: string | null;
}

/** Looks over the shoulder of users' code, in development. It changes nothing of what the code does. */
export interface Watch {
  /** Calls a workflow's code, or a step's function. */
  inside<Answer>(place: WatchedPlace, call: () => Answer): Answer;
  /** Calls what is neither, such as the user's log. */
  outside<Answer>(call: () => Answer): Answer;
  /** The context is asked for something, as in `step "charge"`. */
  asked(what: string): void;
  /** The code goes on without its context. `after`: what it was given last, as in `step "charge"`. */
  strayed(place: WatchedPlace, after: string | null): void;
}
