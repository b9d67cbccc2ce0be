import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import { checkInteger, checkOptions } from "../core/options.ts";
import { placeOfStream } from "../core/payload-codec.ts";
import type { StreamPlace } from "../store/showing.ts";
import { checkAbortSignal } from "./abort-listeners.ts";
import type { Connection } from "./connection.ts";
import { assertRunId, notFound } from "./run-id.ts";
import { createWatch, type WatchSeams } from "./watch.ts";

/** From where to read a stream, and until when. */
export interface StreamOptions {
  /** The first position to read; what a reader has seen last, and one. Default 1. */
  readonly from?: number;
  /** Stops the reading, not the run: the iterator throws its reason. Default: reads until the end. */
  readonly signal?: AbortSignal;
}

/** One thing that a run has written to a stream. */
export interface StreamItem<Value = unknown> {
  /** From 1, without gaps. */
  readonly position: number;
  readonly value: Value;
  /** The step that wrote it; null: the workflow's own code did, once. */
  readonly step: string | null;
  /** The attempt of that step. */
  readonly attempt: number | null;
  /**
   * The first that this attempt of the step wrote to the stream. If the step has written before, that was another attempt,
   * which came to nothing: drop what it wrote.
   */
  readonly isFirst: boolean;
  readonly at: Date;
}

/** Reads what runs write to their streams. */
export interface Streaming {
  read<Value>(runId: RunId, name: string, options?: StreamOptions): AsyncGenerator<StreamItem<Value>, void>;
  close(): Promise<void>;
}

const itemsPerRead = 1_000;
const mostPosition = 2 ** 31 - 1;

export function createStreaming(seams: WatchSeams, { store, payloads, call }: Connection): Streaming {
  const keyOf = ({ runId, name, after }: StreamPlace): string => `${runId} ${after} ${name}`;

  const watch = createWatch<StreamPlace, true>(seams, {
    name: "look for what was written to streams",
    awaited: "a stream",
    hears: ["written", "ended"],
    keyOf,
    runOf: ({ runId }) => runId,
    async look(places) {
      const hasNews = await store.findWritten(places);
      return new Map(places.filter((_, index) => hasNews[index]).map((place) => [keyOf(place), true]));
    },
  });

  return {
    async *read<Value>(runId: RunId, name: string, options: StreamOptions = {}) {
      assertName("stream", name);
      const { from = 1, signal } = checkOptions("stream", options, {
        from: checkInteger(1, mostPosition),
        signal: checkAbortSignal,
      });
      assertRunId(runId);
      for (let after = from - 1; ;) {
        signal?.throwIfAborted();
        const place = { runId, name, after };
        const page = await call(() => store.readStream(place, itemsPerRead));
        if (page === null) throw notFound(runId);
        for (const { data, at, isClosing, ...item } of page.items) {
          if (isClosing) return;
          const value = payloads.decode(data, placeOfStream(runId, name)) as Value;
          yield { ...item, value, at: new Date(at) };
          after = item.position;
          signal?.throwIfAborted();
        }
        if (page.items.length > 0) continue;
        if (page.isEnded) return;
        await watch.wait(place, signal);
      }
    },
    close: () => watch.close(),
  };
}
