import type { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import type { FoundEnd } from "../store/run-record.ts";
import type { Taker } from "../store/taker.ts";
import { notFound } from "./run-id.ts";
import { createWatch, type Watch, type WatchSeams } from "./watch.ts";

/**
 * Waits for runs to end. One that is not there fails with `RUN_NOT_FOUND`. `takers`: the workers of this process, which tell of the
 * ends of what they have under way.
 */
export function createEndWatch(
  seams: WatchSeams,
  takers: ReadonlySet<Taker> = new Set(),
): Watch<RunId, FoundEnd> {
  return createWatch<RunId, FoundEnd>(seams, {
    name: "look for ended runs",
    awaited: "a run's result",
    hears: ["ended"],
    isUnderWay(runId) {
      for (const taker of takers) if (taker.isUnderWay(runId)) return true;
      return false;
    },
    keyOf: (runId) => runId,
    runOf: (runId) => runId,
    async look(runIds) {
      const ends = await seams.store.getEnds(runIds);
      const news = new Map<string, FoundEnd | PawlError>();
      for (const runId of runIds) {
        const end = ends.get(runId);
        if (end !== null) news.set(runId, end ?? notFound(runId));
      }
      return news;
    },
  });
}
