import type { Rng } from "../sim/rng.ts";
import type { SentSignals } from "./expect.ts";
import { generateProgram, type ProgramLimits } from "./generate-program.ts";
import { walk, type Program } from "./program.ts";

/** What callers do with one run. Times are ms after the beginning. */
export interface RootPlan {
  readonly program: Program;
  readonly key: string;
  /** Everybody who starts it, with the same key; at least one. */
  readonly startsAtMs: readonly number[];
  /** Somebody starts another program with the same key: one of the two is refused. */
  readonly rival: { readonly program: Program; readonly atMs: number } | null;
  /** How long after its start it is cancelled, if it is. */
  readonly cancelAfterMs: number | null;
  /** How long after its start it is paused, if it is, and how long after that resumed. */
  readonly pause: { readonly afterMs: number; readonly forMs: number } | null;
}

export interface Scenario {
  readonly roots: readonly RootPlan[];
  /** By the path of the program whose run gets them. */
  readonly signals: ReadonlyMap<string, SentSignals>;
}

export interface ScenarioLimits extends ProgramLimits {
  readonly roots: number;
  /** Callers begin what they do within this time. */
  readonly activeMs: number;
}

export function generateScenario(rng: Rng, limits: ScenarioLimits): Scenario {
  const drawMs = (): number => rng.next() * limits.activeMs;
  /** Mostly while the run is still at work. */
  const drawSoonMs = (): number => rng.next() * rng.pick([0.02, 0.2, 1]) * limits.leaseMs;
  const roots: RootPlan[] = [];
  const signals = new Map<string, SentSignals>();
  for (let i = 0; i < limits.roots; i++) {
    const program = generateProgram(rng, limits, `r${i}`);
    drawSignals(rng, program, signals);
    const startsAtMs = [drawMs()];
    while (rng.chance(0.3) && startsAtMs.length < 4) startsAtMs.push(drawMs());
    const rivalProgram = generateProgram(rng, { ...limits, size: 1, depth: 0 }, `rival${i}`);
    roots.push({
      program,
      key: `key ${i}`,
      startsAtMs,
      rival: rng.chance(0.1) ? { program: rivalProgram, atMs: drawMs() } : null,
      cancelAfterMs: rng.chance(0.25) ? drawSoonMs() : null,
      pause: rng.chance(0.15) ? { afterMs: drawSoonMs(), forMs: drawMs() } : null,
    });
  }
  return { roots, signals };
}

/** For each name either as many signals as there are waits, at times one more, or none at all. */
function drawSignals(rng: Rng, program: Program, all: Map<string, SentSignals>): void {
  const waits = new Map<string, number>();
  for (const op of walk(program.ops, false)) {
    if (op.kind === "wait") waits.set(op.signal, (waits.get(op.signal) ?? 0) + 1);
    else if (op.kind === "call") drawSignals(rng, op.program, all);
  }
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
