import type { Plan, PlannedNode } from "./plan.ts";
import { GraphNode, PlaceReference, type Reference, type Settled } from "./reference.ts";
import { fill } from "./source.ts";

/** How a node ended; one that was skipped for no failure, but because of a `when`, was skipped by choice. */
export type Outcome =
  | Exclude<Settled<unknown>, { readonly status: "skipped" }>
  | { readonly status: "skipped"; readonly reason: string; readonly isByChoice: boolean };

/** How the nodes of a run have ended so far, and what that makes of those that wait for them. */
export class Outcomes {
  readonly #plan: Plan;
  readonly #input: unknown;
  readonly #outcomes: (Outcome | undefined)[];
  readonly #met: Uint32Array;
  readonly #lost: Uint32Array;

  constructor(plan: Plan, input: unknown) {
    this.#plan = plan;
    this.#input = input;
    this.#outcomes = plan.nodes.map(() => undefined);
    this.#met = new Uint32Array(plan.nodes.length);
    this.#lost = new Uint32Array(plan.nodes.length);
  }

  of(node: number): Outcome | undefined {
    return this.#outcomes[node];
  }

  /** Notes how a node ended. Answers who can now be decided: it may begin, or never will. */
  note(node: number, outcome: Outcome): readonly PlannedNode[] {
    this.#outcomes[node] = outcome;
    const decided: PlannedNode[] = [];
    for (const { node: index, isSettled } of this.#plan.dependents[node] ?? []) {
      const waiting = this.#plan.nodes[index] as PlannedNode;
      const before = this.canBegin(waiting) || this.isLost(waiting);
      const counts = isSettled || outcome.status === "completed" ? this.#met : this.#lost;
      counts[index] = (counts[index] ?? 0) + 1;
      if (!before && (this.canBegin(waiting) || this.isLost(waiting))) decided.push(waiting);
    }
    return decided;
  }

  canBegin({ index, least }: PlannedNode): boolean {
    return (this.#met[index] ?? 0) >= least;
  }

  isLost({ index, needs, least }: PlannedNode): boolean {
    return needs.length - (this.#lost[index] ?? 0) < least;
  }

  /** Why a node that can never begin cannot. */
  skipped({ needs, least }: PlannedNode): Outcome {
    const lost = needs.filter(({ node, isSettled }) => !isSettled && this.#isGone(node));
    const isByChoice = lost.every(({ node }) => {
      const outcome = this.#outcomes[node];
      return outcome?.status === "skipped" && outcome.isByChoice;
    });
    const told = lost
      .slice(0, 3)
      .map(({ node }) => `"${this.#plan.nodes[node]?.name}" ${this.#wordOf(node)}`);
    const more = lost.length > told.length ? ` and ${lost.length - told.length} more` : "";
    const rule = least === needs.length ? "" : `; it needs ${least} of ${needs.length}`;
    return { status: "skipped", reason: `${told.join(", ")}${more}${rule}`, isByChoice };
  }

  /** What was given, with the values that are there; the others are undefined. */
  fill(source: unknown, item?: unknown): unknown {
    return fill(source, (reference) => this.#valueOf(reference, item));
  }

  #valueOf(reference: Reference, item: unknown): unknown {
    if (reference instanceof PlaceReference)
      return at(reference.of === "input" ? this.#input : item, reference.path);
    if (reference instanceof GraphNode) {
      const outcome = this.#outcomeOf(reference);
      return outcome?.status === "completed" ? outcome.value : undefined;
    }
    const outcome = this.#outcomeOf(reference.settled);
    return outcome?.status === "skipped" ? { status: "skipped", reason: outcome.reason } : outcome;
  }

  #outcomeOf(node: GraphNode): Outcome | undefined {
    return this.#outcomes[this.#plan.numberOf.get(node) ?? -1];
  }

  #isGone(node: number): boolean {
    const status = this.#outcomes[node]?.status;
    return status === "failed" || status === "skipped";
  }

  #wordOf(node: number): string {
    return this.#outcomes[node]?.status === "failed" ? "failed" : "was skipped";
  }
}

/** Undefined where there is no such field. */
function at(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const field of path)
    found =
      typeof found === "object" && found !== null && Object.hasOwn(found, field)
        ? (found as Readonly<Record<string, unknown>>)[field]
        : undefined;
  return found;
}
