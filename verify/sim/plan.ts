import type { CrashPoint } from "../../packages/pawl/src/core/crash-point.ts";
import type { Rng } from "./rng.ts";

/**
 * What may happen to a call of the store:
 * - `dropped`: never applied, answered with an error.
 * - `unanswered`: applied, answered with an error.
 * - `overtaken`: answered with an error, applied afterwards: the caller's deadline passed first.
 * - `delayed`: applied much later than usual.
 * - `heldUp`: applied in time, answered much later than usual.
 */
export const callFates = ["dropped", "unanswered", "overtaken", "delayed", "heldUp"] as const;
export type CallFate = (typeof callFates)[number];

/** What may happen to a hint on its way to one process. */
export const hintFates = ["lost", "late", "twice"] as const;
type HintFate = (typeof hintFates)[number];

/** Mean time between two of a kind, in one process; null for never. */
interface ProcessFaults {
  readonly pauseMs: number | null;
  readonly killMs: number | null;
  readonly stopMs: number | null;
  /** Processes also die here, or are paused for more than a lease, each time with this probability. */
  readonly point: CrashPoint | null;
  readonly atPoint: "crash" | "pause";
  readonly pointRate: number;
}

/** Everything about a schedule that is decided before it begins. */
export interface Plan {
  readonly leaseMs: number;
  readonly pollMs: number;
  readonly workers: number;
  readonly concurrency: number;
  /** Parked runs that a worker keeps in memory: none, few, or all. */
  readonly stickyRuns: number;
  readonly clients: number;
  readonly roots: number;
  readonly programSize: number;
  readonly crashLimit: number;
  /** The programs' code is changed meanwhile, on one worker after the other. */
  readonly isDeployed: boolean;
  /** Callers use workers' processes too, as in a server that also works: those may hold what is started there at once. */
  readonly startsAtWorkers: boolean;
  /** Between two attempts at a program. */
  readonly retryMs: number;
  /** Callers begin what they do within this time. */
  readonly activeMs: number;
  /** Faults happen during this time; then the world heals. */
  readonly faultMs: number;
  /** A call's way to the store, and back, takes up to this. */
  readonly latencyMs: number;
  /** What is delayed is delayed by up to this. */
  readonly longMs: number;
  /** How often each of these happens. */
  readonly calls: Readonly<Record<CallFate, number>>;
  readonly hints: Readonly<Record<HintFate, number>>;
  readonly processes: ProcessFaults;
  /** Clocks are wrong by up to this. */
  readonly skewMs: number;
}

export const crashPoints: readonly CrashPoint[] = [
  "claim.answered",
  "step.before",
  "step.after",
  "undo.before",
  "undo.after",
  "record.before",
  "record.after",
  "park.before",
  "park.after",
  "end.before",
  "end.after",
  "heartbeat.before",
  "sweep.before",
  "cancel.recorded",
];

/** Those that a holder passes between two steps of a run: fencing is for these. */
const holdersPoints = crashPoints.filter((point) => /^(step|undo|record|park|end|cancel)/.test(point));

/** Polls may grow five times rarer, and what was overlooked must be found in two leases and ten seconds. */
const rarestPollMs = (leaseMs: number): number => (2 * leaseMs + 10_000) / 5;

/**
 * Draws a plan. Each fault is absent from about half the plans: what one fault hides, a schedule without it shows. Most worlds are
 * small: there most mistakes show already, and many small worlds can be looked at in the time of a large one.
 */
export function drawPlan(rng: Rng): Plan {
  const leaseMs = rng.pick([600, 1_500, 3_000]);
  const mostlyFew = (most: number): number => 1 + Math.floor(most * rng.next() ** 3);
  const activeMs = leaseMs * rng.pick([0.1, 0.1, 0.5, 1.5]);
  const maybe = (most: number): number => (rng.chance(0.5) ? rng.next() * most : 0);
  const every = (leases: number): number | null =>
    rng.chance(0.5) ? leases * leaseMs * rng.between(0.5, 2) : null;
  return {
    leaseMs,
    pollMs: Math.min(leaseMs * rng.pick([0.4, 1, 2]), rarestPollMs(leaseMs)),
    workers: rng.pick([1, 1, 1, 2, 2, 3]),
    concurrency: rng.pick([1, 2, 10]),
    clients: rng.pick([1, 1, 2]),
    roots: mostlyFew(3),
    programSize: mostlyFew(10),
    crashLimit: rng.chance(0.2) ? 3 : 1_000,
    activeMs,
    faultMs: activeMs + leaseMs * rng.between(0.5, 2.2),
    latencyMs: rng.pick([1, 5, 40]),
    longMs: leaseMs * rng.pick([0.2, 1, 3]),
    calls: {
      dropped: maybe(0.15),
      unanswered: maybe(0.15),
      overtaken: maybe(0.08),
      delayed: maybe(0.08),
      heldUp: maybe(0.08),
    },
    hints: { lost: rng.pick([0, 0, 0.3, 1]), late: maybe(0.5), twice: maybe(0.3) },
    processes: {
      pauseMs: every(2),
      killMs: every(3),
      stopMs: every(5),
      point: rng.chance(0.8) ? rng.pick(rng.chance(0.7) ? holdersPoints : crashPoints) : null,
      atPoint: rng.pick(["crash", "pause"]),
      pointRate: rng.pick([0.05, 0.3, 1]),
    },
    skewMs: rng.pick([0, 50, 7_200_000]),
    stickyRuns: rng.pick([0, 1, 1_000, 1_000]),
    isDeployed: rng.chance(0.2),
    retryMs: rng.pick([20, 20, Math.floor(leaseMs / 2)]),
    startsAtWorkers: rng.chance(0.4),
  };
}
