/** What a step does at a visit. `to` counts the steps; a key of the patch is the step's own. */
export type Move =
  | { readonly kind: "patch" }
  | { readonly kind: "next"; readonly to: number; readonly isPatched: boolean }
  | { readonly kind: "sleep"; readonly to: number; readonly isPatched: boolean; readonly ms: number }
  | {
      readonly kind: "wait";
      readonly signal: "a" | "b";
      readonly to: number;
      readonly isPatched: boolean;
      readonly onTimeout: number | null;
    }
  | { readonly kind: "complete" }
  | { readonly kind: "fail" };

export interface Plan {
  /** By visit, and again from the first. */
  readonly moves: readonly Move[];
  /** Where a patch alone leads. */
  readonly next: number;
  /** So many attempts at each visit throw. */
  readonly flaky: number;
  readonly limit: number | null;
  readonly hasUndo: boolean;
}

const mostTurns = 25;
export const mostAttempts = 3;

export type Values = Readonly<Record<string, number>>;

/** What becomes of a machine. */
export interface Course {
  readonly status: "completed" | "failed" | "waiting";
  readonly output: unknown;
  /** The visits that completed, each with why it was made. */
  readonly visits: readonly string[];
  readonly step: string;
  readonly state: Values | undefined;
  /** The steps that would be undone, in order. */
  readonly undone: readonly string[];
}

/** A machine without an engine: a loop over a table. */
export function evaluate(plans: readonly Plan[], sent: readonly ("a" | "b")[]): Course {
  const inbox = [...sent.entries()];
  const counts = new Map<number, number>();
  const visits: string[] = [];
  const undone: string[] = [];
  /** Not shown before the first step has completed. */
  let shown: Values | undefined;
  let state: Values = { turns: 0 };
  let at = 0;
  let cause = "entered";
  let step = nameOf(0);
  const end = (status: Course["status"], output?: unknown): Course => ({
    status,
    output,
    visits,
    step,
    state: shown,
    undone: undone.toReversed(),
  });

  for (;;) {
    const plan = plans[at]!;
    const visit = (counts.get(at) ?? 0) + 1;
    if (visit > (plan.limit ?? Infinity)) return end("failed");
    counts.set(at, visit);
    step = nameOf(at);
    if (plan.flaky >= mostAttempts) return end("failed");
    const move = moveAt(plan, visit, state);
    if (move.kind === "fail") return end("failed");
    visits.push(`${nameOf(at)} ${cause}`);
    if (plan.hasUndo) undone.push(nameOf(at));
    if (move.kind === "complete") return end("completed", state);
    if (move.kind === "patch" || move.isPatched) state = { ...state, ...patchOf(at, visit, state) };
    shown = state;
    if (move.kind === "patch" || move.kind === "next") {
      at = move.kind === "patch" ? plan.next : move.to;
      cause = "entered";
      step = nameOf(at);
    } else if (move.kind === "sleep") {
      at = move.to;
      cause = "timer";
    } else {
      const found = inbox.findIndex(([, name]) => name === move.signal);
      if (found === -1 && move.onTimeout === null) return end("waiting");
      cause = found === -1 ? `timeout ${move.signal}` : `signal ${move.signal} ${inbox[found]![0]}`;
      at = found === -1 ? (move.onTimeout ?? 0) : move.to;
      if (found !== -1) inbox.splice(found, 1);
    }
  }
}

export function nameOf(step: number): string {
  return `s${step}`;
}

/** A machine ends sometime, whatever its plans. */
export function moveAt({ moves }: Plan, visit: number, state: Values): Move {
  if (visit > mostTurns || (state["turns"] ?? 0) >= mostTurns) return { kind: "complete" };
  return moves[(visit - 1) % moves.length]!;
}

export function patchOf(step: number, visit: number, state: Values): Values {
  return { turns: (state["turns"] ?? 0) + 1, [nameOf(step)]: visit };
}
