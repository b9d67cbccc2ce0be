/** A promise that was broken, with the few observations that contradict each other. */
export interface Violation {
  /** As in the list of invariants: `I5`, … */
  readonly invariant: string;
  readonly says: string;
  readonly witness: readonly unknown[];
}

export type Report = (invariant: string, says: string, ...witness: readonly unknown[]) => void;

/** One broken promise breaks many more: the first few tell. */
const mostViolations = 20;

export class Verdict {
  readonly violations: Violation[] = [];

  readonly report: Report = (invariant, says, ...witness) => {
    if (this.violations.length < mostViolations) this.violations.push({ invariant, says, witness });
  };
}

export function describeViolation({ invariant, says, witness }: Violation): string {
  return [`${invariant}: ${says}`, ...witness.map((item) => `    ${JSON.stringify(item)}`)].join("\n");
}
