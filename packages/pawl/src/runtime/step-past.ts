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
  const pasts = new KnownPasts();
  for (const event of history) pasts.add(event);
  return pasts;
}

type KnownPast = { -readonly [Name in keyof StepPast]: StepPast[Name] };

/** What is known of a step is changed in place: there is one for every step of every run. */
class KnownPasts implements StepPasts {
  readonly #pasts = new Map<string, KnownPast>();

  of(key: string): StepPast {
    return this.#pasts.get(key) ?? nothing;
  }

  all(): Iterable<readonly [key: string, past: StepPast]> {
    return this.#pasts;
  }

  add(event: RunEvent): void {
    if (event.kind === "redriven") for (const past of this.#pasts.values()) forgetAttempts(past);
    // Those that were still to be tried again when the run's attempt failed.
    if (event.kind === "attempt_failed") for (const past of this.#pasts.values()) past.failures = 0;
    const change = event.name === null ? undefined : changes[event.kind];
    if (change !== undefined) change(this.#known(event.name ?? ""), event);
  }

  #known(key: string): KnownPast {
    const there = this.#pasts.get(key);
    if (there !== undefined) return there;
    const past = { ...nothing };
    this.#pasts.set(key, past);
    return past;
  }
}

/** Another life has limits of its own. */
function forgetAttempts(past: KnownPast): void {
  past.hasDoubt ||= past.isOpen;
  past.attempts = 0;
  past.failures = 0;
  past.dueAt = null;
  past.isOpen = false;
}

type Change = (past: KnownPast, event: RunEvent) => void;

const failAttempt: Change = (past, event) => {
  past.attempts += 1;
  past.isOpen = false;
  past.lastSeq = event.seq;
  past.hasDoubt ||= isDoubtful(event);
};

/** What a fact of this kind changes. */
const changes: Partial<Record<EventKind, Change>> = {
  step_intended(past, event) {
    past.isOpen = true;
    past.isUndoIntended ||= isForUndo(event);
    past.lastSeq = event.seq;
  },
  step_progressed(past, { data }) {
    past.progress = data;
  },
  step_retried(past, event) {
    failAttempt(past, event);
    past.failures += 1;
    past.dueAt = event.dueAt;
  },
  step_failed(past, event) {
    failAttempt(past, event);
    past.failures = 0;
    past.dueAt = null;
  },
  step_completed(past, event) {
    past.isOpen = false;
    past.dueAt = null;
    past.completed = event;
    past.lastSeq = event.seq;
  },
  undo_retried(past, { dueAt }) {
    past.undoFailures += 1;
    past.undoDueAt = dueAt;
  },
  undo_completed(past) {
    past.undone = "undone";
  },
  undo_failed(past) {
    past.undone = "failed";
  },
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
