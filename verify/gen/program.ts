/** One thing that workflow code does. Its `path` is unique in the whole scenario. */
export type Op =
  | {
      readonly kind: "step";
      readonly path: string;
      /** Taken from few, so that the same name occurs again, also in parallel chains. */
      readonly name: string;
      readonly workMs: number;
      /** Its function throws when it is called for the first, …, or this many-th time in a run, whoever calls. */
      readonly failures: number;
      readonly retry: Tries | null;
      readonly undo: UndoPlan | null;
      /** In whose transaction its function is called; null: in none. */
      readonly transaction: Database | null;
      /** One attempt may take so long; where its function is to fail, it never ends. Default: for ever, and it throws. */
      readonly timeoutMs?: number;
      /** It is not called again once its worker has died in it. Default: it is. */
      readonly failsOnCrash?: boolean;
    }
  | { readonly kind: "sleep"; readonly path: string; readonly ms: number }
  /** Waits for somebody who comes by and resumes the run, in about this time. */
  | { readonly kind: "pause"; readonly path: string; readonly ms: number }
  | {
      readonly kind: "wait";
      readonly path: string;
      readonly signal: string;
      readonly timeoutMs: number | null;
    }
  | {
      readonly kind: "call";
      readonly path: string;
      readonly program: Program;
      /** How long the child may take. Default: for ever. */
      readonly timeoutMs?: number;
    }
  /** Starts a child, does other things, then waits for it. */
  | {
      readonly kind: "start";
      readonly path: string;
      readonly program: Program;
      readonly timeoutMs?: number;
      readonly between: readonly Op[];
    }
  /** `Promise.all` over chains, each in a scope of its own or not. */
  | {
      readonly kind: "all";
      readonly path: string;
      readonly isScoped: boolean;
      readonly chains: readonly (readonly Op[])[];
    }
  /** `ctx.map` over chains, so many at a time. */
  | {
      readonly kind: "map";
      readonly path: string;
      readonly concurrency: number;
      readonly chains: readonly Chain[];
    }
  /** Publishes its path under a key. */
  | { readonly kind: "publish"; readonly path: string; readonly key: string }
  /** Writes so many items to a stream, each with its path and a number, and then closes it or not. */
  | {
      readonly kind: "stream";
      readonly path: string;
      readonly stream: string;
      readonly items: number;
      readonly closes: boolean;
    }
  /** `ctx.race` over chains. */
  | { readonly kind: "race"; readonly path: string; readonly chains: readonly (readonly Op[])[] }
  /** What a change put in the place of something else: the chain from before it, and the one since. Its id is its path. */
  | { readonly kind: "patch"; readonly path: string; readonly chains: readonly [before: Chain, since: Chain] }
  /** `try`/`catch` around its body. */
  | { readonly kind: "try"; readonly path: string; readonly body: readonly Op[] }
  | { readonly kind: "throw"; readonly path: string };

/**
 * Where a transaction is: on a connection of Pawl's own, in the same database by a library that takes any answer to COMMIT
 * for a good one, or by a library in a database that runs do not live in.
 */
export const databases = ["own", "library", "foreign"] as const;
export type Database = (typeof databases)[number];

type Chain = readonly Op[];

/** How often something is tried, and the pause in between. */
export interface Tries {
  readonly attempts: number;
  readonly pauseMs: number;
}

/** What undoes a step; it throws as often as this when it is called in a run, whoever calls. */
interface UndoPlan extends Tries {
  readonly failures: number;
}

export type StepOp = Op & { readonly kind: "step" };

/** What a workflow does, as its input: one registered workflow can then be any program. */
export interface Program {
  /** The path of the call that starts it; a name of its own for one that callers start. */
  readonly path: string;
  /** Attempts at the whole of it. */
  readonly attempts: Attempts;
  readonly ops: readonly Op[];
  /** It answers updates from its beginning on. Default: it does not. */
  readonly serves?: boolean;
  /** As what it goes on when it has come to its end. */
  readonly next: Program | null;
}

/** The program, and those as which it goes on. */
export function chainOf(program: Program): readonly Program[] {
  return program.next === null ? [program] : [program, ...chainOf(program.next)];
}

/** Each number has a workflow of its own. */
export const attemptChoices = [1, 3] as const;
export type Attempts = (typeof attemptChoices)[number];

/** So many failures that no number of attempts is enough. */
export const always = 1_000_000;

/** Every operation of the program, those of its children's programs only if asked for. */
export function* walk(ops: readonly Op[], intoChildren: boolean): Generator<Op> {
  for (const op of ops) {
    yield op;
    if ("chains" in op) for (const chain of op.chains) yield* walk(chain, intoChildren);
    else if (op.kind === "try") yield* walk(op.body, intoChildren);
    if (op.kind === "start") yield* walk(op.between, intoChildren);
    if ("program" in op && intoChildren)
      for (const { ops } of chainOf(op.program)) yield* walk(ops, intoChildren);
  }
}

/** How long the program takes at most on its own, when everything in it happens in turn and every attempt repeats it all. */
export function workMs(program: Program, retryMs: number): number {
  let sum = 0;
  for (const op of walk(program.ops, false)) {
    if (op.kind === "step") sum += stepMs(op);
    else if (op.kind === "sleep" || op.kind === "pause") sum += op.ms;
    else if (op.kind === "wait") sum += op.timeoutMs ?? 0;
    else if ("program" in op) sum += workMs(op.program, retryMs);
  }
  const nextMs = program.next === null ? 0 : workMs(program.next, retryMs);
  return program.attempts * (sum + retryMs) + nextMs;
}

function stepMs({ workMs, retry, undo, timeoutMs = 0 }: StepOp): number {
  const triesMs = (retry?.attempts ?? 1) * (workMs + timeoutMs + (retry?.pauseMs ?? 0));
  return triesMs + (undo?.attempts ?? 0) * (workMs + (undo?.pauseMs ?? 0));
}

/** What is sent as an update, and becomes of it: answered after a step, failed by its handler, or refused by its schema. */
export const updateKinds = ["answered", "failed", "refused"] as const;
export type UpdateKind = (typeof updateKinds)[number];

/** The name of the update that programs answer. */
export const updateName = "ask";

export function kindOfUpdate(payload: string): UpdateKind | undefined {
  return updateKinds.find((kind) => payload.startsWith(`${kind}:`));
}

/** Where an update is worked on, as its step is known outside. */
export function pathOfUpdate({ path }: Program, payload: string): string {
  return `${path}u:${payload}`;
}
