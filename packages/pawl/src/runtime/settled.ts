import type { Fact } from "./holding.ts";

/** What a step's call answers that has taken care of its record: the fact to add, or null where it is in the history. */
export class Settled {
  readonly fact: Pick<Fact, "kind" | "data"> | null;

  constructor(fact: Pick<Fact, "kind" | "data"> | null) {
    this.fact = fact;
  }
}
