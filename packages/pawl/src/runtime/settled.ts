import type { Payload } from "../core/json.ts";

interface SettledFact {
  readonly kind: "step_completed" | "step_failed";
  readonly data: Payload | null;
}

/** What a step's call answers that has taken care of its record: the fact to add, or null where it is in the history. */
export class Settled {
  readonly fact: SettledFact | null;

  constructor(fact: SettledFact | null) {
    this.fact = fact;
  }
}
