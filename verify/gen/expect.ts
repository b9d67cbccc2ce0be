import { always, chainOf, walk, type Op, type Program, type StepOp } from "./program.ts";

/** All the ways in which a program may end, whatever happens around it. */
export interface Expectation {
  readonly completes: boolean;
  /** Paths of the operations that may have thrown the error it fails with; none: it cannot fail. */
  readonly causes: ReadonlySet<string>;
  /** It may wait for ever for a signal that nobody sends. */
  readonly waits: boolean;
}

/** Signals sent to one run, by name, each list in the order in which its only sender sends it. */
export type SentSignals = ReadonlyMap<string, readonly string[]>;

export interface Surroundings {
  /** The signals that runs of this program are sent, by the program's path. */
  readonly signalsOf: (path: string) => SentSignals;
  /** Whether any child may end otherwise than its program says: it crashed too often, timed out, or was cancelled. */
  readonly mayStop: boolean;
  /** Whether children may be redriven by themselves: a deadline that has passed is dropped then. */
  readonly mayOutlive: boolean;
}

const completes: Expectation = { completes: true, causes: new Set(), waits: false };
const waits: Expectation = { completes: false, causes: new Set(), waits: true };

/** Interprets the program without running it; that it goes on as another is a completion. */
export function expectEnd(program: Program, around: Surroundings): Expectation {
  const end = expectChain(program.ops, program.path, around);
  // Each failure of a step that does not always fail costs at most one attempt. They may cost all, or the last of a run
  // that fails anyhow.
  const flaky = [...uncaughtFlaky(program.ops)];
  const failures = flaky.reduce((sum, { failures }) => sum + failures, 0);
  if (failures < program.attempts && end.causes.size === 0) return end;
  return { ...end, causes: new Set([...end.causes, ...flaky.map(({ path }) => path)]) };
}

/** The same for the program and all as which it goes on. */
function expectChainEnd(program: Program, around: Surroundings): Expectation {
  return chainOf(program)
    .map((each) => expectEnd(each, around))
    .reduce(inTurn);
}

/** It may fail, though not always: not all of its attempts may be enough. */
function isFlaky(op: Op): op is StepOp {
  return op.kind === "step" && op.failures >= (op.retry?.attempts ?? 1) && op.failures < always;
}

function* uncaughtFlaky(ops: readonly Op[]): Generator<StepOp> {
  for (const op of ops) {
    if (isFlaky(op)) yield op;
    else if ("chains" in op) for (const chain of op.chains) yield* uncaughtFlaky(chain);
    else if (op.kind === "start") yield* uncaughtFlaky(op.between);
  }
}

function expectChain(ops: readonly Op[], path: string, around: Surroundings): Expectation {
  let all = completes;
  for (const op of ops) {
    if (!all.completes) return all;
    all = inTurn(all, expectOp(op, path, around));
  }
  return all;
}

function inTurn(first: Expectation, second: Expectation): Expectation {
  if (!first.completes) return first;
  return {
    completes: second.completes,
    causes: new Set([...first.causes, ...second.causes]),
    waits: first.waits || second.waits,
  };
}

function either(one: Expectation, other: Expectation): Expectation {
  return {
    completes: one.completes || other.completes,
    causes: new Set([...one.causes, ...other.causes]),
    waits: one.waits || other.waits,
  };
}

function expectOp(op: Op, path: string, around: Surroundings): Expectation {
  const throws: Expectation = { completes: false, causes: new Set([op.path]), waits: false };
  switch (op.kind) {
    case "sleep":
    case "pause":
    case "publish":
    case "stream":
      return completes;
    case "throw":
      return throws;
    case "step":
      if (op.failures >= always) return throws;
      return op.failsOnCrash === true ? { ...completes, causes: throws.causes } : completes;
    case "wait": {
      const isSent = (around.signalsOf(path).get(op.signal)?.length ?? 0) > 0;
      return op.timeoutMs !== null || isSent ? completes : waits;
    }
    case "try": {
      const end = expectChain(op.body, path, around);
      return { completes: end.completes || mayThrow(op.body, end), causes: new Set(), waits: end.waits };
    }
    case "call": {
      const end = expectChainEnd(op.program, around);
      const isLimited = op.timeoutMs !== undefined;
      const fails = end.causes.size > 0 || around.mayStop || isLimited;
      const waitsOn = end.waits && (!isLimited || around.mayOutlive);
      return { ...end, waits: waitsOn, causes: fails ? throws.causes : end.causes };
    }
    case "start": {
      const between = expectChain(op.between, path, around);
      const call = expectOp({ ...op, kind: "call" }, path, around);
      return inTurn(between, call);
    }
    case "patch": {
      const [before, since] = op.chains.map((chain) => expectChain(chain, path, around));
      return either(before ?? completes, since ?? completes);
    }
    case "race": {
      const ends = op.chains.map((chain) => expectChain(chain, path, around));
      return {
        completes: ends.some((end) => end.completes),
        causes: new Set(ends.flatMap((end) => [...end.causes])),
        waits: ends.every((end) => end.waits),
      };
    }
    case "map": {
      const ends = op.chains.map((chain) => expectChain(chain, path, around));
      // One that waits for ever may keep others from beginning, and from failing.
      return {
        completes: ends.every((end) => end.completes),
        causes: new Set(ends.flatMap((end) => [...end.causes])),
        waits: ends.some((end) => end.waits),
      };
    }
    case "all": {
      const ends = op.chains.map((chain) => expectChain(chain, path, around));
      const surelyFails = ends.some((end) => !end.completes && !end.waits);
      return {
        completes: ends.every((end) => end.completes),
        causes: new Set(ends.flatMap((end) => [...end.causes])),
        waits: ends.some((end) => end.waits) && !surelyFails,
      };
    }
    default:
      return op satisfies never;
  }
}

function mayThrow(body: readonly Op[], end: Expectation): boolean {
  return end.causes.size > 0 || [...walk(body, false)].some(isFlaky);
}

function lastOf(program: Program): Program {
  return program.next === null ? program : lastOf(program.next);
}

/** Where the output of a completed run is not what its program says, or null where it is. */
export function findMismatch(program: Program, output: unknown, around: Surroundings): string | null {
  if (program.next !== null)
    return output === undefined ? null : `${program.path} went on and gave ${JSON.stringify(output)}`;
  const sent = around.signalsOf(program.path);
  const received = new Map<string, number>();

  const compareChain = (ops: readonly Op[], value: unknown): string | null => {
    if (!Array.isArray(value) || value.length !== ops.length) {
      return `${JSON.stringify(value)} where ${ops.length} results of ${ops[0]?.path ?? "nothing"} and after belong`;
    }
    return firstOf(ops.map((op, index) => () => compareOp(op, value[index])));
  };

  const compareOp = (op: Op, value: unknown): string | null => {
    const differs = `${op.kind} ${op.path} gave ${JSON.stringify(value)}`;
    switch (op.kind) {
      case "sleep":
        return value === "slept" ? null : differs;
      case "pause":
        return value === "resumed" ? null : differs;
      case "publish":
        return value === "published" ? null : differs;
      case "stream":
        return value === "written" ? null : differs;
      case "throw":
        return differs;
      case "step":
        return typeof value === "string" && value.startsWith(`${op.path}#`) ? null : differs;
      case "wait": {
        if (value === "timeout") return op.timeoutMs === null ? differs : null;
        const count = received.get(op.signal) ?? 0;
        received.set(op.signal, count + 1);
        return value === sent.get(op.signal)?.[count]
          ? null
          : `${differs}, not signal ${count} of ${op.signal}`;
      }
      case "try": {
        const end = expectChain(op.body, program.path, around);
        // What it received before it threw is not in the output: later waits have names of their own.
        return value === "caught" ? (mayThrow(op.body, end) ? null : differs) : compareChain(op.body, value);
      }
      case "call":
        return findMismatch(lastOf(op.program), value, around);
      case "start":
        if (!Array.isArray(value) || value.length !== 2) return differs;
        return compareChain(op.between, value[0]) ?? findMismatch(lastOf(op.program), value[1], around);
      case "patch": {
        const { isNew, values } = (value ?? {}) as { readonly isNew?: boolean; readonly values?: unknown };
        return typeof isNew === "boolean" ? compareChain(op.chains[isNew ? 1 : 0], values) : differs;
      }
      case "race": {
        const { winner, value: won } = (value ?? {}) as {
          readonly winner?: string;
          readonly value?: unknown;
        };
        const chain = op.chains[Number(winner)];
        return chain === undefined ? differs : compareChain(chain, won);
      }
      case "map":
      case "all":
        if (!Array.isArray(value) || value.length !== op.chains.length) return differs;
        return firstOf(op.chains.map((chain, index) => () => compareChain(chain, value[index])));
      default:
        return op satisfies never;
    }
  };

  return compareChain(program.ops, output);
}

function firstOf(comparisons: readonly (() => string | null)[]): string | null {
  for (const compare of comparisons) {
    const mismatch = compare();
    if (mismatch !== null) return mismatch;
  }
  return null;
}
