import { shortWaitMs } from "../../packages/pawl/src/runtime/steps.ts";
import type { Rng } from "../sim/rng.ts";
import {
  always,
  attemptChoices,
  databases,
  type Attempts,
  type Database,
  type Op,
  type Program,
  type StepOp,
  type Tries,
} from "./program.ts";

export interface ProgramLimits {
  /** Time scale: sleeps and timeouts are a few of these at most. */
  readonly leaseMs: number;
  /** Operations in all, children's included. */
  readonly size: number;
  readonly depth: number;
  /** Its code may begin anew though its workflow makes one attempt: by retries of its own, or because it is redriven. */
  readonly mayRepeat: boolean;
  /** Its code is changed while it runs. */
  readonly mayPatch: boolean;
  /** Steps and calls take no longer than they say: steps and children may be given time limits. */
  readonly isPunctual: boolean;
  /** Somebody comes by and resumes runs that have paused themselves. Default: nobody does. */
  readonly mayPause?: boolean;
  /** Attempts of its workflow. Default: any. */
  readonly attempts?: Attempts;
}

/** Few, so that the same name occurs again. */
export const stepNames = ["a", "b", "c"];

/**
 * Draws a random program. Each chain has signals of its own, so that which wait gets which signal is never a race. Where
 * its code may begin anew, errors are caught only outside of parallel chains, and around no such chains: there a failure may be
 * caught while others go on, a new attempt sets it aside, and the code may then go another way, and ask by name and number
 * for what was recorded on the old one.
 */
export function generateProgram(rng: Rng, limits: ProgramLimits, path: string): Program {
  const attempts = limits.attempts ?? (limits.mayPatch ? 1 : rng.pick(attemptChoices));
  const repeats = attempts > 1 || limits.mayRepeat;
  // What a new beginning makes of a failure that the code had dealt with is best seen where there are many.
  const moreTries = limits.mayRepeat ? 0.12 : 0;
  const options = rng.fork(`options ${path}`);
  // What an option hides, a program without it shows.
  const mayRetrySteps = options.chance(0.5);
  const patching = rng.fork(`patching ${path}`);
  // Code from before a change asks for nothing that came since: it neither undoes that, nor tells a new attempt of it.
  const mayPatch = limits.mayPatch && !repeats && patching.chance(0.7);
  const mayUndo = options.chance(0.5) && !mayPatch;
  const transacting = rng.fork(`transacting ${path}`);
  const showing = rng.fork(`showing ${path}`);
  const mayShow = showing.chance(0.12);
  const limiting = rng.fork(`limiting ${path}`);
  const mayLimit = limiting.chance(0.15);
  const pausing = rng.fork(`pausing ${path}`);
  const mayPause = limits.mayPause === true && pausing.chance(0.12);
  const mapping = rng.fork(`mapping ${path}`);
  const mayMap = mapping.chance(0.25);
  const mayTransact = transacting.chance(0.25);
  const goingOn = rng.fork(`going on ${path}`);
  const goesOn = goingOn.chance(0.15);
  let left = limits.size;
  let chainCount = 0;
  let parallelDepth = 0;
  /** A branch that wins in one attempt may lose in the next, which then has nothing to undo its steps with. */
  let raceDepth = 0;
  let isCatching = false;
  let hasCaught = false;

  const drawChain = (depth: number, path: string, maxLength: number): Op[] => {
    const signals = [`${path}s${chainCount++}`, `${path}s${chainCount++}`];
    const ops: Op[] = [];
    const length = 1 + rng.below(maxLength);
    for (let i = 0; i < length && left > 0; i++) ops.push(drawOp(depth, `${path}.${i}`, signals));
    return ops;
  };

  const drawOp = (depth: number, path: string, signals: readonly string[]): Op => {
    left -= 1;
    if (mayPatch && parallelDepth === 0 && depth > 0 && patching.chance(0.3)) return drawPatch(depth, path);
    let draw = rng.next();
    if (depth > 0) {
      if (draw < 0.12) return drawAll(depth, path);
      if (draw < 0.18) return drawRace(depth, path, signals);
      if (draw < 0.24 + moreTries) return drawTry(depth, path);
      if (draw < 0.32 + moreTries) return drawCall(depth, path);
      if (draw < 0.36 + moreTries) return drawStart(depth, path);
      draw -= moreTries;
    }
    if (mayShow && showing.chance(0.3)) return drawShown(path);
    if (mayPause && pausing.chance(0.3)) return { kind: "pause", path, ms: 2 * limits.leaseMs };
    if (draw < 0.46) return drawWait(path, signals);
    if (draw < 0.57) return { kind: "sleep", path, ms: drawMs() };
    if (draw < 0.59) return { kind: "throw", path };
    return drawStep(path);
  };

  const drawAll = (depth: number, path: string): Op => {
    if (isCatching && repeats) return drawStep(path);
    const chains: Op[][] = [];
    const count = 2 + rng.below(2);
    parallelDepth += 1;
    for (let i = 0; i < count; i++) chains.push(drawChain(depth - 1, `${path}c${i}`, 3));
    parallelDepth -= 1;
    // What is undone is done again in another life, and chains overtake each other: each needs names of its own.
    if (mayMap && mapping.chance(0.7))
      return { kind: "map", path, concurrency: mapping.pick([1, 2, 100]), chains };
    const isScoped = rng.chance(0.5) || (repeats && (mayUndo || mayRetrySteps));
    return { kind: "all", path, isScoped, chains };
  };

  const drawPatch = (depth: number, path: string): Op => ({
    kind: "patch",
    path,
    chains: [drawChain(depth - 1, `${path}o`, 2), drawChain(depth - 1, `${path}n`, 2)],
  });

  /** Another branch may wait for what is waited for later, too: if it loses, the signal is still there. */
  const drawRace = (depth: number, path: string, signals: readonly string[]): Op => {
    if (isCatching && repeats) return drawStep(path);
    const count = 2 + rng.below(2);
    parallelDepth += 1;
    raceDepth += 1;
    const chains = Array.from({ length: count }, (_, i) => drawChain(depth - 1, `${path}b${i}`, 2));
    raceDepth -= 1;
    parallelDepth -= 1;
    if (options.chance(0.5))
      chains.push([
        { kind: "wait", path: `${path}b${count}.0`, signal: options.pick(signals), timeoutMs: null },
      ]);
    return { kind: "race", path, chains };
  };

  const drawStart = (depth: number, path: string): Op => {
    const call = drawCall(depth, path);
    return { ...call, kind: "start", between: drawChain(depth - 1, `${path}w`, 2) };
  };

  const drawTry = (depth: number, path: string): Op => {
    if (parallelDepth > 0 && repeats) return drawStep(path);
    isCatching = true;
    hasCaught = true;
    const body = drawChain(depth - 1, `${path}t`, 3);
    isCatching = false;
    return { kind: "try", path, body };
  };

  const drawCall = (depth: number, path: string): Op & { kind: "call" } => {
    const size = Math.min(left, 1 + rng.below(4));
    left -= size;
    const { leaseMs, mayRepeat, mayPatch, isPunctual, mayPause = false } = limits;
    const isLimited = mayLimit && limiting.chance(0.5) && limits.isPunctual;
    const limit = isLimited ? { timeoutMs: drawMs() } : {};
    const program = generateProgram(
      rng,
      { leaseMs, mayRepeat, mayPatch, isPunctual, mayPause, size, depth: depth - 1 },
      path,
    );
    // Some wait for what may never come: only their limit ends them.
    if (!isLimited || !limiting.chance(0.5)) return { kind: "call", path, ...limit, program };
    const wait = { kind: "wait", path: `${path}.last`, signal: `${path}last`, timeoutMs: null } as const;
    return { kind: "call", path, ...limit, program: { ...program, ops: [...program.ops, wait] } };
  };

  const drawShown = (path: string): Op => {
    if (showing.chance(0.4)) return { kind: "publish", path, key: showing.pick(["state", "sum"]) };
    const closes = showing.chance(0.2);
    const stream = closes ? path : showing.pick(["out", "log"]);
    return { kind: "stream", path, stream, items: showing.below(4), closes };
  };

  const drawWait = (path: string, signals: readonly string[]): Op => ({
    kind: "wait",
    path,
    signal: rng.pick(signals),
    timeoutMs: rng.chance(0.5) ? drawMs() : null,
  });

  const drawStep = (path: string): Op => {
    const failures = rng.chance(isCatching && limits.mayRepeat ? 0.5 : 0.85)
      ? 0
      : rng.chance(0.8)
        ? 1 + rng.below(2)
        : always;
    const workMs = rng.chance(0.5) ? 0 : rng.chance(0.9) ? drawMs() / 4 : limits.leaseMs * 1.5;
    return withOptions({ path, name: rng.pick(stepNames), workMs: Math.floor(workMs), failures });
  };

  /** What may hang takes no time where it does not. */
  const drawLimits = (transaction: Database | null): Partial<StepOp> => {
    if (!mayLimit || transaction !== null) return {};
    if (limiting.chance(0.4)) return { failsOnCrash: true };
    if (limiting.chance(0.5) || !limits.isPunctual) return {};
    return { workMs: 0, timeoutMs: 1 + Math.floor(limiting.next() * 0.3 * limits.leaseMs) };
  };

  /**
   * Beyond a failure that is caught and tried again, names may be numbered otherwise: another database would give a step what
   * one that nobody has recorded left there under its number.
   */
  const drawTransaction = (): Database | null => {
    if (!mayTransact || !transacting.chance(0.8)) return null;
    return transacting.pick(
      repeats && hasCaught ? databases.filter((each) => each !== "foreign") : [...databases, "foreign"],
    );
  };

  const withOptions = (step: Pick<StepOp, "path" | "name" | "workMs" | "failures">): StepOp => {
    const transaction = drawTransaction();
    const retry = mayRetrySteps && options.chance(0.5) ? drawTries() : null;
    const undo =
      mayUndo && options.chance(0.6) && (raceDepth === 0 || !repeats) && transaction === null && !mayLimit
        ? { ...drawTries(), failures: options.pick([0, 0, 0, 1, 2, always]) }
        : null;
    const failures =
      retry !== null && step.failures === 0 && options.chance(0.6) ? 1 + options.below(3) : step.failures;
    return { kind: "step", ...step, failures, retry, undo, transaction, ...drawLimits(transaction) };
  };

  /** Some pauses are so long that the run is parked. */
  const drawTries = (): Tries => ({
    attempts: 2 + options.below(3),
    pauseMs: Math.floor(
      options.pick([0, 0, shortWaitMs]) + options.next() * options.pick([0.02, 0.2, 1]) * limits.leaseMs,
    ),
  });

  /** Anything from an instant to more than a lease. */
  const drawMs = (): number => {
    const scale = rng.pick([0, 0.02, 0.2, 1.2]);
    return Math.floor(rng.next() * scale * limits.leaseMs);
  };

  /** The most usual workflow of all: one step after the other, each of which takes a moment. */
  const drawSteps = (): Op[] =>
    Array.from({ length: limits.size }, (_, i) => {
      const workMs = Math.floor(rng.next() * 0.05 * limits.leaseMs);
      return withOptions({ path: `${path}.${i}`, name: rng.pick(stepNames), workMs, failures: 0 });
    });

  /** A failure that is caught, and after it a step by the name of one that is not reached: what follows rests on the failure. */
  const drawCaught = (): Op[] => {
    hasCaught = true;
    const [failing, next] = [rng.pick(stepNames), rng.pick(stepNames)];
    const draw = (path: string, name: string, failures: number): Op => {
      const workMs = Math.floor(rng.next() * 0.2 * limits.leaseMs);
      return withOptions({ path, name, workMs, failures });
    };
    const body = [draw(`${path}.0t.0`, failing, 1), draw(`${path}.0t.1`, next, 0)];
    const after = [1, 2, 3].map((index) => draw(`${path}.${index}`, next, 0));
    return [{ kind: "try", path: `${path}.0`, body }, ...after];
  };

  /** A race in which a child and a wait may lose, and after it another wait for the same signal. */
  const drawRaced = (): Op[] => {
    const signal = `${path}s${chainCount++}`;
    const race = `${path}.0`;
    const drawMoment = (): number =>
      Math.floor(options.next() * options.pick([0, 0.02, 0.2]) * limits.leaseMs);
    const wait = (path: string): Op => ({ kind: "wait", path, signal, timeoutMs: null });
    const sleep = (path: string, ms: number): Op => ({ kind: "sleep", path, ms });
    const next: Program = {
      path: `${race}b2pn`,
      attempts: 1,
      ops: [sleep(`${race}b2pn.0`, limits.leaseMs)],
      next: null,
    };
    const child: Program = {
      path: `${race}b2p`,
      attempts: 1,
      ops: [sleep(`${race}b2p.0`, goesOn ? drawMoment() : limits.leaseMs)],
      next: goesOn ? next : null,
    };
    // The next attempt has a child of the same name, while the first one may still tell of its end.
    const isTriedAgain = attempts > 1 && options.chance(0.3);
    const quick: Op =
      options.chance(0.5) && !isTriedAgain
        ? { kind: "sleep", path: `${race}b0.0`, ms: drawMoment() }
        : {
            ...withOptions({
              path: `${race}b0.0`,
              name: rng.pick(stepNames),
              workMs: drawMoment() + (isTriedAgain ? Math.floor(0.2 * limits.leaseMs) : 0),
              failures: isTriedAgain ? 1 : 0,
            }),
            retry: null,
            undo: null,
          };
    const chains: Op[][] = [
      [quick],
      [wait(`${race}b1.0`)],
      [{ kind: "call", path: `${race}b2`, program: child }],
    ];
    const after = withOptions({ path: `${path}.2`, name: rng.pick(stepNames), workMs: 0, failures: 0 });
    const rest = goingOn.chance(0.7) ? [wait(`${path}.1`), after] : [];
    return [{ kind: "race", path: race, chains }, ...rest];
  };

  /** Many items, a few at a time. One that fails keeps the next from beginning, which shows where the code goes on. */
  const drawMapped = (): Op[] => {
    const here = repeats ? `${path}.0` : `${path}.0t.0`;
    hasCaught ||= !repeats;
    const chains = Array.from({ length: 3 + mapping.below(3) }, (_, index): Op[] => {
      const workMs = Math.floor(mapping.next() * mapping.pick([0, 0.05, 0.3]) * limits.leaseMs);
      const failures = mapping.chance(0.25) ? 1 + mapping.below(2) : 0;
      return [withOptions({ path: `${here}c${index}.0`, name: rng.pick(stepNames), workMs, failures })];
    });
    const map: Op = { kind: "map", path: here, concurrency: mapping.pick([1, 2, 2, 3]), chains };
    const workMs = Math.floor(mapping.next() * 0.3 * limits.leaseMs);
    const after = withOptions({ path: `${path}.1`, name: rng.pick(stepNames), workMs, failures: 0 });
    return repeats ? [map] : [{ kind: "try", path: `${path}.0`, body: [map] }, after];
  };

  /** A change in the middle, with time to come by it before and after. */
  const drawPatched = (): Op[] => {
    const draw = (index: number): Op => {
      const workMs = Math.floor(patching.next() * 0.2 * limits.leaseMs);
      return withOptions({ path: `${path}.${index}`, name: rng.pick(stepNames), workMs, failures: 0 });
    };
    const sleep: Op = { kind: "sleep", path: `${path}.3`, ms: Math.floor(patching.next() * limits.leaseMs) };
    return [draw(0), draw(1), drawPatch(1, `${path}.2`), sleep, draw(4)];
  };

  /** Shows something again and again, between steps that take a moment: whoever goes on with it shows the rest. */
  const drawShowing = (): Op[] =>
    Array.from({ length: limits.size }, (_, index) => {
      const here = `${path}.${index}`;
      if (index % 2 === 0) return drawShown(here);
      const workMs = Math.floor(showing.next() * 0.3 * limits.leaseMs);
      return withOptions({ path: here, name: rng.pick(stepNames), workMs, failures: 0 });
    });

  const drawNext = (): Program => {
    const next = { ...limits, attempts, size: 1 + goingOn.below(3), depth: Math.min(1, limits.depth) };
    return generateProgram(goingOn.fork("next"), next, `${path}n`);
  };

  const length = Math.max(2, Math.ceil(limits.size / 2));
  const isCaught = limits.mayRepeat && rng.chance(0.2);
  const isRaced = limits.depth > 1 && options.chance(0.15);
  const drawPlain = (): Op[] => (rng.chance(0.2) ? drawSteps() : drawChain(limits.depth, path, length));
  const isPatched = mayPatch && patching.chance(0.8);
  const isMapped = mayMap && mapping.chance(0.2);
  const isShowing = mayShow && showing.chance(0.5);
  const ops = isPatched
    ? drawPatched()
    : isShowing
      ? drawShowing()
      : isCaught
        ? drawCaught()
        : isRaced
          ? drawRaced()
          : isMapped
            ? drawMapped()
            : drawPlain();
  // Only what does not complete is undone.
  if (mayUndo && options.chance(0.3)) ops.push({ kind: "throw", path: `${path}.end` });
  const serves = !goesOn && !mayPatch && rng.fork(`serving ${path}`).chance(0.1);
  return { path, attempts, ops, serves, next: goesOn ? drawNext() : null };
}
