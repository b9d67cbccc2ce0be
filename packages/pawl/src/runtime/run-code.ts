import type { RunEvent } from "../core/event.ts";
import { forkOf, seedRunId, type Fork } from "../core/forked.ts";
import type { Log } from "../core/log.ts";
import type { Payloads } from "../core/payloads.ts";
import { createSeededRandom, type SeededRandom } from "../core/seeded-random.ts";
import type { Watch } from "../core/watch.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { BranchingParts } from "./branching.ts";
import type { Context, RunIdentity } from "./context.ts";
import type { ContinuationTerms } from "./continue-as.ts";
import { createContext, type ContextParts } from "./create-context.ts";
import type { CodeEnd } from "./difference.ts";
import type { Branch } from "./request.ts";
import { createRunLog, unwatched } from "./run-log.ts";
import { Scope, type Asking } from "./scope.ts";
import type { Transact } from "./transactions.ts";
import { createUpdateHandlers, type UpdateHandlers } from "./updates.ts";
import type { Workflow } from "./workflow.ts";

export interface RunCodeParts {
  readonly claimed: ClaimedRun;
  readonly history: readonly RunEvent[];
  readonly workflow: Workflow;
  readonly payloads: Payloads;
  readonly log: Log;
  readonly transact: Transact;
  readonly watch?: Watch | undefined;
}

/** What the code of a run asks of whoever executes it. */
export interface CodeHost extends Asking, BranchingParts {
  isReplaying(): boolean;
  /** Whether the code takes the new side of a patch. */
  patch(id: string): boolean;
  /** For what the code asks for last: unless it was told to stop before, `end` is called, and it ends there. */
  stopHere(
    asked: { readonly family: string; readonly key: string },
    branch: Branch | null,
    end: () => void,
  ): Promise<never>;
  /** The code has come to its end. */
  ended(end: CodeEnd): void;
  /** Handlers get no more updates, but for those that are on their way to them: whether there are any is answered. */
  withdrawHandlers(): boolean;
  /** Calls the function as development mode sees the workflow's code. */
  watched<T>(call: () => T): T;
}

/** The code of a run while it is executed: what it is called with, asks with, and knows of time and chance. */
export class RunCode implements ContextParts {
  readonly #parts: RunCodeParts;
  readonly #host: CodeHost;
  readonly #fork: Fork | null;
  #now: number;
  #given = 0;
  #random: SeededRandom | null = null;
  #updates: UpdateHandlers | null = null;
  #run: RunIdentity | null = null;

  constructor(parts: RunCodeParts, host: CodeHost) {
    this.#parts = parts;
    this.#host = host;
    this.#fork = forkOf(parts.history);
    this.#now = this.#fork?.since ?? parts.claimed.createdAt;
  }

  /** Calls the workflow. How it ends, its host is told. */
  call(input: unknown): void {
    const host = this.#host;
    const ctx = createContext(this, new Scope("", host));
    host
      .watched(() => this.#called(ctx, input))
      .then(
        (output) => this.#returned(output),
        (error: unknown) => host.ended({ kind: "threw", error }),
      );
  }

  #called(ctx: Context, input: unknown): Promise<unknown> {
    try {
      return Promise.resolve(this.workflow.call(ctx, input));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Handlers that have an update answer it first. */
  #returned(output: unknown): void {
    const host = this.#host;
    if (this.#updates === null) return host.ended({ kind: "returned", output });
    void this.#updates.finished().then(
      () => host.ended({ kind: "returned", output }),
      (error: unknown) => host.ended({ kind: "threw", error }),
    );
  }

  /** The code gets this fact next. */
  given({ at }: RunEvent): void {
    this.#now = Math.max(this.#now, at);
    // A new generator after each fact: what steps draw, which do not run again in replay, shifts nothing.
    this.#given += 1;
    this.#random = null;
  }

  get run(): RunIdentity {
    const { runId: id, workflow, version, attempt, key, parentId } = this.#parts.claimed;
    return (this.#run ??= { id, workflow, version, attempt, key, parentId });
  }

  get workflow(): Workflow {
    return this.#parts.workflow;
  }

  get payloads(): Payloads {
    return this.#parts.payloads;
  }

  get transact(): Transact {
    return this.#parts.transact;
  }

  log(): Log {
    const { log, watch } = this.#parts;
    return createRunLog(watch === undefined ? log : unwatched(log, watch), {}, () =>
      this.#host.isReplaying(),
    );
  }

  random(): SeededRandom {
    return (this.#random ??= createSeededRandom(this.#seed()));
  }

  now(): number {
    return this.#now;
  }

  patch(id: string): boolean {
    return this.#host.patch(id);
  }

  continueAs(terms: ContinuationTerms, branch: Branch | null): Promise<never> {
    // Handlers that have an update answer it first.
    const endLater = (): void =>
      void this.updates()
        .finished()
        .then(() => this.#host.ended({ kind: "continued", terms }));
    return this.#host.stopHere({ family: "continueAs", key: this.workflow.name }, branch, endLater);
  }

  block(reason: string, branch: Branch | null): Promise<never> {
    return this.#host.stopHere({ family: "block", key: this.workflow.name }, branch, () =>
      this.#host.ended({ kind: "blocked", reason }),
    );
  }

  adopt(promise: Promise<unknown>, branch: Branch): boolean {
    return this.#host.adopt(promise, branch);
  }

  withdraw(branch: Branch): void {
    this.#host.withdraw(branch);
  }

  updates(): UpdateHandlers {
    return (this.#updates ??= createUpdateHandlers({
      schemas: this.workflow.updateSchemas,
      payloads: this.payloads,
      withdraw: () => this.#host.withdrawHandlers(),
    }));
  }

  /** A fork draws what its source drew, for as long as it takes the same course. */
  #seed(): string {
    return `${seedRunId(this.#fork, this.#parts.claimed.runId, this.#given)}/${this.#given}`;
  }
}
