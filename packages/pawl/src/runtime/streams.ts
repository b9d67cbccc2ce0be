import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import { placeOfEvent, placeOfStream } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { closedStream } from "../core/request-key.ts";
import type { Holding } from "./holding.ts";
import type { StreamRequest } from "./request.ts";
import type { StepStreamWriter } from "./step-context.ts";

/** The streams of a held run: what its code writes, with facts, and what its steps write, without. */
export interface Streams {
  /** Takes note of the streams that were closed before. */
  recall(history: readonly RunEvent[]): void;
  /** Records what the code writes, or that it closes a stream; nothing but that record answers the request. */
  issue(request: StreamRequest): void;
  /** The writers of one call of a step's function, for as long as it is awaited. */
  ofStep(
    step: string,
    attempt: number,
    isAwaited: () => boolean,
  ): <Value = unknown>(name: string) => StepStreamWriter<Value>;
}

export interface StreamsParts {
  readonly runId: RunId;
  readonly holding: Holding;
  readonly payloads: Payloads;
  /** Called when something waits to be recorded. */
  readonly written: () => void;
}

export function createStreams(parts: StreamsParts): Streams {
  return new RunStreams(parts);
}

class RunStreams implements Streams {
  readonly #parts: StreamsParts;
  #closed: Set<string> | null = null;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  recall(history: readonly RunEvent[]): void {
    for (const { kind, name, data } of history) {
      const stream = kind === "stream_written" && data === null ? closedStream(name ?? "") : null;
      if (stream !== null) this.#close(stream);
    }
  }

  issue({ key, stream, value, isClosing }: StreamRequest): void {
    const { runId, holding, payloads } = this.#parts;
    const fact = { kind: "stream_written", name: key } as const;
    if (this.#isClosed(stream)) {
      const data = payloads.encodeError(this.#closedError(stream), placeOfEvent(runId, fact));
      holding.add({ ...fact, data });
      return;
    }
    if (isClosing) this.#close(stream);
    const data = payloads.seal(value, placeOfStream(runId, stream));
    const item = { name: stream, data, step: null, attempt: null, isFirst: false, isClosing };
    holding.write(item, { ...fact, data: null }).catch(() => {});
  }

  ofStep(
    step: string,
    attempt: number,
    isAwaited: () => boolean,
  ): <Value = unknown>(name: string) => StepStreamWriter<Value> {
    const { runId, holding, payloads, written } = this.#parts;
    const begun = new Set<string>();
    const write = async (name: string, value: unknown): Promise<void> => {
      if (!isAwaited()) throw this.#endedError(step, attempt);
      if (this.#isClosed(name)) throw this.#closedError(name);
      const what = `What step "${step}" writes to stream "${name}"`;
      const data = payloads.encode(value, placeOfStream(runId, name), what);
      const isFirst = !begun.has(name);
      begun.add(name);
      const recorded = holding.write({ name, data, step, attempt, isFirst, isClosing: false });
      written();
      await recorded;
    };
    return (name) => {
      assertName("stream", name);
      return {
        write(value) {
          const done = write(name, value);
          // One that nobody awaits must not end the process.
          done.catch(() => {});
          return done;
        },
      };
    };
  }

  #close(stream: string): void {
    (this.#closed ??= new Set()).add(stream);
  }

  #isClosed(stream: string): boolean {
    return this.#closed?.has(stream) === true;
  }

  #closedError(name: string): PawlError {
    const { runId } = this.#parts;
    return new PawlError("STREAM_CLOSED", `The stream "${name}" of run ${runId} is closed.`, { runId, name });
  }

  #endedError(step: string, attempt: number): PawlError {
    const { runId } = this.#parts;
    const message = `Attempt ${attempt} at step "${step}" is over, and writes to no stream any more.`;
    return new PawlError("STEP_ENDED", message, { runId, step, attempt });
  }
}
