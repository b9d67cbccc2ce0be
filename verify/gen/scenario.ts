import type { Rng } from "../sim/rng.ts";
import type { SentSignals } from "./expect.ts";
import { generateProgram, stepNames, type ProgramLimits } from "./generate-program.ts";
import {
  attemptChoices,
  chainOf,
  updateKinds,
  walk,
  type Attempts,
  type Op,
  type Program,
} from "./program.ts";

/** What a start says of its run beside its program. Times are ms from the start; null: nothing is said. */
export interface StartTerms {
  readonly delayMs: number | null;
  readonly expiresInMs: number | null;
  readonly timeoutMs: number | null;
  /** Attempts for this run alone. */
  readonly attempts: Attempts | null;
  readonly priority: number;
  /** A second start with the key is refused. */
  readonly mustBeNew: boolean;
}

const plainTerms: StartTerms = {
  delayMs: null,
  expiresInMs: null,
  timeoutMs: null,
  attempts: null,
  priority: 0,
  mustBeNew: false,
};

/** Null: left as it is. */
export interface ReschedulePlan {
  readonly afterMs: number;
  readonly priority: number | null;
  /** 0: now. */
  readonly startInMs: number | null;
}

export interface RedrivePlan {
  /** At this time after its start, or this long after it has ended. */
  readonly when: "started" | "ended";
  readonly afterMs: number;
  /** All runs that ended like it, not it alone. */
  readonly isForAll: boolean;
  /** It begins anew, also if it has completed. */
  readonly isFresh: boolean;
  /** How long after that it is terminated, if it is. */
  readonly terminateAfterMs: number | null;
}

/** What callers do with one run. Times are ms after the beginning. */
export interface RootPlan {
  readonly program: Program;
  readonly key: string;
  readonly terms: StartTerms;
  /** Everybody who starts it, with the same key; at least one. */
  readonly startsAtMs: readonly number[];
  /** It is started by a signal of this name, which its program waits for first; null: without any. */
  readonly greeting: string | null;
  /** Somebody starts another program with the same key: one of the two is refused. */
  readonly rival: { readonly program: Program; readonly atMs: number } | null;
  /** How long after its start it is cancelled, if it is. */
  readonly cancelAfterMs: number | null;
  readonly terminateAfterMs: number | null;
  /** How long after its start it is paused, if it is, and how long after that resumed; null: never, its deadline ends it. */
  readonly pause: { readonly afterMs: number; readonly forMs: number | null } | null;
  readonly reschedules: readonly ReschedulePlan[];
  readonly redrives: readonly RedrivePlan[];
  /** How long after its start, and from which step, it is forked, if it is. */
  readonly fork: { readonly afterMs: number; readonly from: string } | null;
}

/** Runs that are started by one call: all, or none where a key belongs to another. */
export interface BatchPlan {
  readonly atMs: number;
  readonly attempts: Attempts;
  readonly items: readonly { readonly program: Program; readonly key: string }[];
}

/** What somebody does to all runs at once; those that are paused are resumed after a while. */
export interface BulkPlan {
  readonly atMs: number;
  readonly kind: "cancelAll" | "pauseAll";
  readonly forMs: number;
}

export interface Scenario {
  readonly roots: readonly RootPlan[];
  readonly batch: BatchPlan | null;
  readonly bulk: BulkPlan | null;
  /** How often somebody terminates a child. */
  readonly meddling: number;
  /** Some runs are given times, or are operated on: any child may then end otherwise than its program says. */
  readonly mayStop: boolean;
  /** By the path of the program whose run gets them. */
  readonly signals: ReadonlyMap<string, SentSignals>;
  readonly updates: ReadonlyMap<string, readonly string[]>;
}

export interface ScenarioLimits extends Omit<ProgramLimits, "mayRepeat" | "attempts"> {
  readonly roots: number;
  /** Nobody else has runs there. Default: others may. */
  readonly isAlone?: boolean;
  /** Callers begin what they do within this time. */
  readonly activeMs: number;
}

export function generateScenario(rng: Rng, limits: ScenarioLimits): Scenario {
  const { leaseMs } = limits;
  const drawMs = (): number => rng.next() * limits.activeMs;
  /** Mostly while the run is still at work. */
  const drawSoonMs = (): number => rng.next() * rng.pick([0.02, 0.2, 1]) * leaseMs;
  const maybe = <T>(probability: number, draw: () => T): T | null =>
    rng.chance(probability) ? draw() : null;
  const several = <T>(probability: number, most: number, draw: () => T): readonly T[] => {
    const drawn: T[] = [];
    while (drawn.length < most && rng.chance(probability)) drawn.push(draw());
    return drawn;
  };
  const drawWholeMs = (leases: readonly number[]): number =>
    Math.floor(rng.next() * rng.pick(leases) * leaseMs);
  const signals = new Map<string, SentSignals>();
  const updates = new Map<string, readonly string[]>();
  // What one operation hides, a scenario without it shows.
  const isTimed = rng.chance(0.4);
  const isOperated = rng.chance(0.5);
  const isRedriven = isOperated && rng.chance(0.6);

  const drawTerms = (): StartTerms => {
    const mustBeNew = rng.chance(0.1);
    if (!isTimed) return { ...plainTerms, mustBeNew };
    return {
      delayMs: maybe(0.4, () => drawWholeMs([0.1, 1])),
      expiresInMs: maybe(0.3, () => drawWholeMs([0.05, 1, 3])),
      timeoutMs: maybe(0.4, () => drawWholeMs([0.1, 1, 4])),
      attempts: maybe(0.3, () => rng.pick(attemptChoices)),
      priority: rng.below(3) - 1,
      mustBeNew,
    };
  };

  const drawReschedule = (): ReschedulePlan => ({
    afterMs: drawSoonMs(),
    priority: maybe(0.5, () => rng.below(5) - 2),
    startInMs: rng.pick([null, 0, drawWholeMs([0.1, 1])]),
  });

  const drawRedrive = (mayBeFresh: boolean): RedrivePlan => ({
    when: rng.chance(0.7) ? "ended" : "started",
    afterMs: drawSoonMs(),
    isForAll: rng.chance(0.4),
    isFresh: mayBeFresh && rng.chance(0.5),
    terminateAfterMs: maybe(0.3, drawSoonMs),
  });

  const drawRoot = (index: number): RootPlan => {
    const terms = drawTerms();
    const mayRepeat = isRedriven || terms.attempts !== null;
    const forking = rng.fork(`forking ${index}`);
    const forkMs = forking.next() * forking.pick([0.2, 1, 2]) * leaseMs;
    const drawn = generateProgram(rng, { ...limits, mayRepeat }, `r${index}`);
    const greeting = rng.fork(`greeting ${index}`).chance(0.12) ? `r${index}hello` : null;
    const program = greeting === null ? drawn : greeted(drawn, greeting);
    drawSignals(rng, drawn, signals);
    if (greeting !== null)
      signals.set(
        drawn.path,
        new Map([...(signals.get(drawn.path) ?? []), [greeting, [greetingOf(greeting)]]]),
      );
    const rivalProgram = generateProgram(rng, { ...limits, mayRepeat, size: 1, depth: 0 }, `rival${index}`);
    // A pause that comes late may find a life without a deadline.
    // Nor does a deadline end one that is being undone. It may be the rival that has the key, and is paused.
    const mayUndo = [...chainOf(program), ...chainOf(rivalProgram)]
      .flatMap(({ ops }) => [...walk(ops, false)])
      .some((op) => op.kind === "step" && op.undo !== null);
    const isEndless = rng.chance(0.5) && terms.timeoutMs !== null && !isRedriven && !mayUndo;
    return {
      program,
      key: `key ${index}`,
      terms: { ...terms, mustBeNew: terms.mustBeNew && greeting === null },
      greeting,
      startsAtMs: [drawMs(), ...several(0.3, 3, drawMs)],
      rival: maybe(0.1, () => ({ program: rivalProgram, atMs: drawMs() })),
      cancelAfterMs: maybe(isRedriven ? 0.4 : 0.25, drawSoonMs),
      terminateAfterMs: isOperated ? maybe(0.25, drawSoonMs) : null,
      pause: maybe(0.15, () => ({ afterMs: drawSoonMs(), forMs: isEndless ? null : drawMs() })),
      reschedules: isOperated ? several(0.3, 3, drawReschedule) : [],
      redrives: isRedriven ? several(0.6, 3, () => drawRedrive(mayFork(program))) : [],
      fork:
        mayFork(program) && forking.chance(0.4) ? { afterMs: forkMs, from: forking.pick(stepNames) } : null,
    };
  };

  const drawBatch = (): BatchPlan => {
    const attempts = rng.pick(attemptChoices);
    const drawItem = (name: string, key: string): BatchPlan["items"][number] => {
      const size = 1 + rng.below(2);
      const program = generateProgram(
        rng,
        {
          leaseMs,
          size,
          depth: 0,
          attempts,
          mayRepeat: isRedriven,
          mayPatch: false,
          isPunctual: limits.isPunctual,
        },
        name,
      );
      drawSignals(rng, program, signals);
      return { program, key };
    };
    const items = [drawItem("b0", "batch 0"), drawItem("b1", "batch 1")];
    if (rng.chance(0.5)) items.splice(rng.below(3), 0, drawItem("b2", `key ${rng.below(limits.roots)}`));
    if (rng.chance(0.15)) items.push(drawItem("b3", "batch 0"));
    return { atMs: drawMs(), attempts, items };
  };

  const bulking = rng.fork("bulk");
  const bulk: BulkPlan | null =
    limits.isAlone === true && bulking.chance(0.06)
      ? {
          atMs: bulking.next() * limits.activeMs,
          kind: bulking.pick(["cancelAll", "pauseAll"]),
          forMs: bulking.next() * leaseMs,
        }
      : null;
  const roots = Array.from({ length: limits.roots }, (_, index) => drawRoot(index));
  for (const { program } of roots) drawUpdates(rng.fork("updates"), program, updates);
  const batch = maybe(0.2, drawBatch);
  return {
    roots: roots.map((root) => (batch?.items.some(({ key }) => key === root.key) ? resumed(root) : root)),
    batch,
    bulk,
    meddling: isOperated ? 0.2 : 0,
    mayStop: isTimed || isOperated || bulk?.kind === "cancelAll",
    signals,
    updates,
  };
}

/** Its key may be that of a run without a deadline, which would be paused for ever. */
function resumed(root: RootPlan): RootPlan {
  return root.pause === null ? root : { ...root, pause: { ...root.pause, forMs: root.pause.forMs ?? 0 } };
}

/** For each name either as many signals as there are waits, at times one more, or none at all. */
function drawSignals(rng: Rng, program: Program, all: Map<string, SentSignals>): void {
  const waits = new Map<string, number>();
  for (const op of walk(program.ops, false)) {
    if (op.kind === "wait") waits.set(op.signal, (waits.get(op.signal) ?? 0) + 1);
    if ("program" in op) drawSignals(rng, op.program, all);
  }
  if (program.next !== null) drawSignals(rng, program.next, all);
  const sent = new Map<string, readonly string[]>();
  for (const [name, count] of waits) {
    if (rng.chance(0.2)) continue;
    const total = count + (rng.chance(0.2) ? 1 : 0);
    sent.set(
      name,
      Array.from({ length: total }, (_, index) => `${name}:${index}`),
    );
  }
  all.set(program.path, sent);
}

/** A few for each program that answers them. */
function drawUpdates(rng: Rng, program: Program, all: Map<string, readonly string[]>): void {
  for (const { path, serves, ops } of chainOf(program)) {
    if (serves === true)
      all.set(
        path,
        Array.from({ length: 1 + rng.below(3) }, (_, index) => `${rng.pick(updateKinds)}:${index}`),
      );
    for (const op of walk(ops, false)) if ("program" in op) drawUpdates(rng, op.program, all);
  }
}

/** What a greeting carries, which is its idempotency key as well. */
export function greetingOf(signal: string): string {
  return `${signal}:0`;
}

function greeted(program: Program, signal: string): Program {
  const wait = { kind: "wait", path: `${program.path}.hello`, signal, timeoutMs: null } as const;
  return { ...program, ops: [wait, ...program.ops] };
}

/** What others tell a run, and what it leaves with others, its fork does not have: only programs that keep to themselves are forked. */
function mayFork({ ops, next, serves }: Program): boolean {
  return next === null && serves !== true && [...walk(ops, false)].every(keepsToItself);
}

function keepsToItself(op: Op): boolean {
  if (op.kind === "step") return op.undo === null;
  return ["sleep", "all", "map", "try", "throw"].includes(op.kind);
}
