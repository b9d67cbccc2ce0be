import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { EndStatus } from "../../packages/pawl/src/core/run-status.ts";
import type { Program } from "../gen/program.ts";
import type { BatchPlan, ReschedulePlan, StartTerms } from "../gen/scenario.ts";
import type { SeenEnd } from "../hist/check-facts.ts";
import type { StreamedItem } from "../hist/check-shown.ts";
import type { SeenAnswer } from "../hist/check-updates.ts";
import type { ClientEntry } from "../hist/record.ts";

/** How a run ended that can live again. */
export type StoppedStatus = Exclude<EndStatus, "completed">;

/** What callers can ask of Pawl, from inside a process that may die. */
export interface ClientPort {
  start(program: Program, key: string, terms: StartTerms): Promise<RunId>;
  startMany(batch: BatchPlan): Promise<readonly RunId[]>;
  signalOrStart(
    program: Program,
    key: string,
    terms: StartTerms,
    signal: string,
    value: string,
  ): Promise<RunId>;
  /** Null: it has come to no such step. */
  fork(run: RunId, from: string, key: string): Promise<RunId | null>;
  signal(run: RunId, name: string, value: string, key: string): Promise<void>;
  cancel(run: RunId): Promise<void>;
  terminate(run: RunId): Promise<void>;
  redrive(run: RunId, isFresh: boolean): Promise<void>;
  /** Redrives all runs that ended like this. */
  redriveAll(status: StoppedStatus): Promise<void>;
  /** All runs that live. */
  cancelAll(): Promise<void>;
  pauseAll(): Promise<void>;
  resumeAll(): Promise<void>;
  reschedule(run: RunId, plan: ReschedulePlan): Promise<void>;
  pause(run: RunId): Promise<void>;
  resume(run: RunId): Promise<void>;
  /** The payload is its idempotency key, too. */
  update(run: RunId, payload: string): Promise<SeenAnswer>;
  published(run: RunId): Promise<Readonly<Record<string, unknown>>>;
  /** All that the run writes to the stream, until its end. */
  readStream(run: RunId, name: string): Promise<readonly StreamedItem[]>;
  result(run: RunId): Promise<SeenEnd>;
}

export interface ClientProcess {
  readonly name: string;
  readonly port: ClientPort;
  /** Resolves when the process dies. */
  readonly died: Promise<void>;
}

/** What somebody asks of a client, and is answered. */
export type Asked = Pick<ClientEntry, "op" | "run" | "key" | "value">;
export type Answered = Partial<Pick<ClientEntry, "run" | "value">>;
