import { PawlError } from "../core/error.ts";
import { oneError, tellFailure, tellSome } from "./failure.ts";
import type { Outcome } from "./outcomes.ts";
import type { Plan, PlannedCase } from "./plan.ts";

/** Whether a graph can succeed, and why not. */
export interface Verdict {
  /** Whether the failure of this node matters where no case says so. */
  minds(node: number): boolean;
  /** Notes that a node has failed, or was skipped. */
  lose(node: number, outcome: Lost): void;
  /** The graph cannot succeed any more, whatever else its nodes do. */
  isLost(): boolean;
  /** What to throw then. */
  failure(): PawlError;
}

type Lost = Exclude<Outcome, { readonly status: "completed" }>;

export function createVerdict({ nodes, handled, cases, results }: Plan): Verdict {
  const failures: { readonly name: string; readonly error: Error }[] = [];
  const missing: string[] = [];
  let open: readonly PlannedCase[] = cases;
  let isLost = false;

  const minds = (node: number): boolean => !handled.has(node) && nodes[node]?.isOptional === false;

  const survives = ({ required, optional }: PlannedCase, node: number, { status }: Lost): boolean =>
    !required.has(node) && (status === "skipped" || optional === null || optional.has(node));

  return {
    minds,
    lose(node, outcome) {
      const name = nodes[node]?.name ?? "";
      const isMinded = cases.length > 0 || minds(node);
      if (outcome.status === "failed" && isMinded) failures.push({ name, error: outcome.error });
      open = open.filter((each) => survives(each, node, outcome));
      isLost ||= cases.length > 0 ? open.length === 0 : outcome.status === "failed" && isMinded;
      if (!results.has(node) || (outcome.status === "skipped" && outcome.isByChoice)) return;
      isLost = true;
      if (outcome.status === "skipped")
        missing.push(`"${name}", whose result is wanted, was skipped: ${outcome.reason}`);
    },
    isLost: () => isLost,
    failure() {
      const failed = failures.map(({ name, error }) => `"${name}" failed: ${tellFailure(error)}`);
      const reasons = [failed, missing].find(({ length }) => length > 0) ?? [
        "no case of its success is satisfied",
      ];
      const details = { nodes: failures.map(({ name }) => name) };
      const cause = oneError(failures.map(({ error }) => error));
      return new PawlError("NODE_FAILED", `The graph has failed: ${tellSome(reasons)}.`, details, { cause });
    },
  };
}
