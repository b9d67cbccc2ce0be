import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import type { RunStatus } from "../core/run-status.ts";
import type { WorkflowRef } from "../core/workflow-ref.ts";
import type { Attempt } from "./attempt.ts";
import type { ForkOptions } from "./fork-options.ts";
import type { NodeView } from "./node-view.ts";
import type { Operating, RescheduleOptions } from "./operating.ts";
import type { Reading } from "./reading.ts";
import type { RunRetryOptions } from "./retrying.ts";
import type { ResultOptions, RunHandle } from "./run-handle.ts";
import type { HistoryEvent } from "./run.ts";
import type { Showing } from "./showing.ts";
import type { StreamItem, Streaming, StreamOptions } from "./streaming.ts";
import { checkSignal, type CancelOptions, type SignalOptions, type Telling } from "./telling.ts";
import type { UpdateOptions, Updating } from "./updating.ts";

/** What all handles of a client share. */
interface HandleParts {
  readonly awaitResult: (runId: RunId, options: ResultOptions) => Promise<unknown>;
  readonly reading: Reading;
  readonly telling: Telling;
  readonly operating: Operating;
  readonly updating: Updating;
  readonly showing: Showing;
  readonly streaming: Streaming;
  readonly retry: (runId: RunId, options?: RunRetryOptions) => Promise<void>;
  readonly fork: (runId: RunId, options: ForkOptions) => Promise<RunId>;
}

/**
 * A handle as it is: what the types of a workflow make of it is left to `RunHandle`. One object with methods, since there is one for
 * every run that is started.
 */
export class UntypedHandle implements Omit<RunHandle, "published" | "update" | "fork"> {
  readonly id: RunId;
  readonly #workflow: WorkflowRef | undefined;
  readonly #parts: HandleParts;

  constructor(id: RunId, workflow: WorkflowRef | undefined, parts: HandleParts) {
    this.id = id;
    this.#workflow = workflow;
    this.#parts = parts;
  }

  status(): Promise<RunStatus> {
    return this.#parts.reading.status(this.id);
  }

  result(options: ResultOptions = {}): Promise<unknown> {
    return this.#parts.awaitResult(this.id, options);
  }

  async signal(name: string, payload?: unknown, options?: SignalOptions): Promise<void> {
    assertName("signal", name);
    await checkSignal(this.#workflow?.signalSchemas ?? null, name, payload);
    await this.#parts.telling.signal(this.id, name, payload, options);
  }

  update(name: string, payload?: unknown, options?: UpdateOptions): Promise<unknown> {
    return this.#parts.updating.update(this.id, name, payload, options, this.#workflow);
  }

  cancel(options?: CancelOptions): Promise<void> {
    return this.#parts.telling.cancel(this.id, options);
  }

  terminate(reason?: string): Promise<void> {
    return this.#parts.operating.terminate(this.id, reason);
  }

  pause(): Promise<void> {
    return this.#parts.telling.pause(this.id);
  }

  resume(): Promise<void> {
    return this.#parts.telling.resume(this.id);
  }

  reschedule(options: RescheduleOptions): Promise<void> {
    return this.#parts.operating.reschedule(this.id, options);
  }

  retry(options?: RunRetryOptions): Promise<void> {
    return this.#parts.retry(this.id, options);
  }

  redrive(): Promise<void> {
    return this.#parts.retry(this.id);
  }

  async fork(options: ForkOptions): Promise<UntypedHandle> {
    return new UntypedHandle(await this.#parts.fork(this.id, options), this.#workflow, this.#parts);
  }

  attempts(): Promise<readonly Attempt[]> {
    return this.#parts.reading.attempts(this.id);
  }

  nodes(): Promise<readonly NodeView[]> {
    return this.#parts.reading.nodes(this.id);
  }

  history(): Promise<readonly HistoryEvent[]> {
    return this.#parts.reading.history(this.id);
  }

  published(key?: string): Promise<unknown> {
    return this.#parts.showing.published(this.id, key, this.#workflow);
  }

  stream<Value = unknown>(name: string, options?: StreamOptions): AsyncGenerator<StreamItem<Value>, void> {
    return this.#parts.streaming.read<Value>(this.id, name, options);
  }
}
