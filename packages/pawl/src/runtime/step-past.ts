import { encode } from "../core/codec.ts";
import type { EventKind, RunEvent } from "../core/event.ts";
import type { Payload } from "../core/json.ts";

/** What the history tells of one step, beside its answer. */
export interface StepPast {
  /** Attempts that failed, in this life of the run. */
  readonly attempts: number;
  /** Those among them that its retry policy counts: each attempt of the run brings the step a new budget. */
  readonly failures: number;
  /** It was said, before it began, that it may have to be undone. */
  readonly isUndoIntended: boolean;
  /** It was said that an attempt begins, and nothing tells how that went. */
  readonly isOpen: boolean;
  /** When the next attempt is due. */
  readonly dueAt: number | null;
  /** What it last said of how far it has come. */
  readonly progress: Payload | null;
  readonly completed: RunEvent | null;
  /** An attempt has failed of which nobody knows what it did. */
  readonly hasDoubt: boolean;
  /** The fact that tells most of how it went. */
  readonly lastSeq: number;
  /** Whether it was undone, or could not be. */
  readonly undone: "undone" | "failed" | null;
  /** Attempts to undo it that failed. */
  readonly undoFailures: number;
  readonly undoDueAt: number | null;
}

/** What the history tells of the steps: kept up to date while it grows. */
export interface StepPasts {
  of(key: string): StepPast;
  add(event: RunEvent): void;
  all(): Iterable<readonly [key: string, past: StepPast]>;
}

const nothing: StepPast = {
  attempts: 0,
  failures: 0,
  isUndoIntended: false,
  isOpen: false,
  dueAt: null,
  progress: null,
  completed: null,
  hasDoubt: false,
  lastSeq: 0,
  undone: null,
  undoFailures: 0,
  undoDueAt: null,
};

export function createStepPasts(history: readonly RunEvent[]): StepPasts {
  const pasts = new Map<string, StepPast>();
  const of = (key: string): StepPast => pasts.get(key) ?? nothing;

  const add = (event: RunEvent): void => {
    if (event.kind === "redriven") forgetAttempts(pasts);
    if (event.kind === "attempt_failed") renewBudgets(pasts);
    if (event.name === null) return;
    const change = changes[event.kind];
    if (change === undefined) return;
    const past = of(event.name);
    pasts.set(event.name, { ...past, ...change(past, event) });
  };

  for (const event of history) add(event);
  return { of, add, all: () => pasts };
}

/** Another life has limits of its own. */
function forgetAttempts(pasts: Map<string, StepPast>): void {
  for (const [key, past] of pasts)
    pasts.set(key, {
      ...past,
      attempts: 0,
      failures: 0,
      dueAt: null,
      isOpen: false,
      hasDoubt: past.hasDoubt || past.isOpen,
    });
}

/** Those that were still to be tried again when the run's attempt failed. */
function renewBudgets(pasts: Map<string, StepPast>): void {
  for (const [key, past] of pasts) if (past.failures > 0) pasts.set(key, { ...past, failures: 0 });
}

type Change = (past: StepPast, event: RunEvent) => Partial<StepPast>;

const failAttempt: Change = (past, event) => ({
  attempts: past.attempts + 1,
  isOpen: false,
  lastSeq: event.seq,
  hasDoubt: past.hasDoubt || isDoubtful(event),
});

/** What a fact of this kind changes. */
const changes: Partial<Record<EventKind, Change>> = {
  step_intended: (past, event) => ({
    isOpen: true,
    isUndoIntended: past.isUndoIntended || isForUndo(event),
    lastSeq: event.seq,
  }),
  step_progressed: (_, { data }) => ({ progress: data }),
  step_retried: (past, event) => ({
    ...failAttempt(past, event),
    failures: past.failures + 1,
    dueAt: event.dueAt,
  }),
  step_failed: (past, event) => ({ ...failAttempt(past, event), failures: 0, dueAt: null }),
  step_completed: (_, event) => ({ isOpen: false, dueAt: null, completed: event, lastSeq: event.seq }),
  undo_retried: (past, { dueAt }) => ({ undoFailures: past.undoFailures + 1, undoDueAt: dueAt }),
  undo_completed: () => ({ undone: "undone" }),
  undo_failed: () => ({ undone: "failed" }),
};

/** What a `step_intended` says. */
export function describeIntent(isForUndo: boolean): Payload | null {
  return isForUndo ? encode({ undo: true }) : null;
}

function isForUndo({ data }: RunEvent): boolean {
  return data !== null && (JSON.parse(data.json) as { readonly undo?: boolean }).undo === true;
}

/** What a failed attempt leaves behind of which nobody knows what it did. */
export function markDoubtful(error: Payload): Payload {
  // Beside the error, sealed or not: this mark is the engine's own.
  return {
    json: JSON.stringify({ ...(JSON.parse(error.json) as object), inDoubt: true }),
    notes: error.notes,
  };
}

function isDoubtful({ data }: RunEvent): boolean {
  return data?.json.includes('"inDoubt":true') === true && readDoubt(data);
}

function readDoubt({ json }: Payload): boolean {
  return (JSON.parse(json) as { readonly inDoubt?: boolean }).inDoubt === true;
}
