import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Payload } from "../../packages/pawl/src/core/json.ts";
import type { CompletionId, TakeOver } from "../../packages/pawl/src/core/transactor.ts";
import { heldRun } from "../../packages/pawl/src/memory/fence.ts";
import type { State } from "../../packages/pawl/src/memory/state.ts";
import type { FactsWithin, WithinAnswer } from "../../packages/pawl/src/store/holder-transactions.ts";
import type { Lease, NewEvent } from "../../packages/pawl/src/store/lease.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { Database } from "../gen/program.ts";
import type { Recorder } from "../hist/record.ts";

interface Effect {
  readonly run: RunId;
  readonly step: string;
  readonly key: string;
  readonly token: string;
}

interface Completion {
  readonly token: string;
  readonly state: "open" | "completed";
  readonly result: Payload | null;
}

/** The database went away in the middle of a transaction, which is rolled back. */
export function brokenConnection(): Error {
  return Object.assign(new Error("terminating connection"), { code: "57P01" });
}

/**
 * What transactions write: the effects of steps, and which transactions have completed where runs do not live. Where the
 * real one would let somebody wait for a lock, here whoever commits first is right, and the other loses its connection.
 */
export class SimDatabase {
  readonly #recorder: Recorder;
  readonly #state: State;
  readonly #completions = new Map<string, Completion>();

  constructor(recorder: Recorder, state: State) {
    this.#recorder = recorder;
    this.#state = state;
  }

  /** `store`: as the process reaches it without faults, for what is recorded in the transaction. */
  begin(process: string, database: Database, store: Store): SimTransaction {
    return new SimTransaction(this, process, database, store);
  }

  isHeld(lease: Lease): boolean {
    try {
      heldRun(this.#state, lease);
      return true;
    } catch (error) {
      if (!PawlError.is(error, "LEASE_LOST")) throw error;
      return false;
    }
  }

  /** What the fence says to facts of which this is the first. */
  judge(lease: Lease, event: NewEvent): WithinAnswer {
    if (!this.isHeld(lease)) return "lost";
    const { run, room } = heldRun(this.#state, lease);
    if (run.newestSeq >= event.seq) return "late";
    return { told: room.told, now: this.#state.now() };
  }

  /** Gives a fact the time at which it was stated; it was committed later. */
  date({ runId }: Lease, { seq }: NewEvent, at: number): void {
    const events = this.#state.runs.get(runId)?.events;
    const there = events?.get(seq);
    if (there !== undefined) events?.set(seq, { ...there, at });
  }

  completionOf(id: string): Completion | undefined {
    return this.#completions.get(id);
  }

  complete(id: string, completion: Completion): void {
    this.#completions.set(id, completion);
  }

  noteEffect(process: string, database: Database, effect: Effect): void {
    this.#recorder.add({ by: "effect", at: this.#recorder.now, process, database, ...effect });
  }
}

function idOf({ runId, step }: CompletionId): string {
  return `${runId} ${step}`;
}

/** Facts that are recorded with their transaction, and say when they were stated. */
interface StatedFacts {
  readonly lease: Lease;
  readonly events: readonly NewEvent[];
  readonly at: number;
}

/** One transaction, as its database sees it. Each method is one statement. */
export class SimTransaction {
  readonly #base: SimDatabase;
  readonly #process: string;
  readonly #database: Database;
  readonly #store: Store;
  readonly #effects: Effect[] = [];
  /** What was found where a completion is to be written. */
  readonly #found = new Map<string, Completion | undefined>();
  readonly #completions = new Map<string, Completion>();
  #token: string | null = null;
  #stated: StatedFacts | null = null;

  constructor(base: SimDatabase, process: string, database: Database, store: Store) {
    this.#base = base;
    this.#process = process;
    this.#database = database;
    this.#store = store;
  }

  insert(effect: Effect): void {
    this.#effects.push(effect);
  }

  open(token: string, lease: Lease): "open" | "lost" {
    this.#token = token;
    return this.#base.isHeld(lease) ? "open" : "lost";
  }

  record(token: string, lease: Lease, { patches, fact }: FactsWithin): WithinAnswer {
    if (token !== this.#token) return "outside";
    const answer = this.#base.judge(lease, patches[0] ?? fact);
    if (typeof answer !== "string") this.#stated = { lease, events: [...patches, fact], at: answer.now };
    return answer;
  }

  takeOver(id: CompletionId): TakeOver {
    const there = this.#find(id);
    if (there?.state === "completed") return { state: "completed", result: there.result };
    this.#completions.set(idOf(id), { token: id.token, state: "open", result: null });
    return { state: "open" };
  }

  complete(id: CompletionId, isFirst: boolean, result: Payload | null): boolean {
    const there = this.#find(id);
    const isFree = isFirst ? there === undefined : there?.state === "open" && there.token === id.token;
    if (isFree) this.#completions.set(idOf(id), { token: id.token, state: "completed", result });
    return isFree;
  }

  /** Everything, or nothing and an error. */
  async commit(): Promise<void> {
    for (const [id, found] of this.#found)
      if (this.#base.completionOf(id) !== found) throw brokenConnection();
    if (this.#stated !== null) await this.#recordFacts(this.#stated);
    for (const [id, completion] of this.#completions) this.#base.complete(id, completion);
    for (const effect of this.#effects) this.#base.noteEffect(this.#process, this.#database, effect);
  }

  async #recordFacts({ lease, events, at }: StatedFacts): Promise<void> {
    const [first] = events;
    if (first === undefined || typeof this.#base.judge(lease, first) === "string") throw brokenConnection();
    await this.#store.record({ lease, events, children: [] });
    for (const event of events) this.#base.date(lease, event, at);
  }

  #find(id: CompletionId): Completion | undefined {
    const key = idOf(id);
    const there = this.#base.completionOf(key);
    this.#found.set(key, there);
    return there;
  }
}
