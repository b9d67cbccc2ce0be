import type { RunId } from "../core/ids.ts";
import type { Connection } from "./connection.ts";

/** A run that went on as another is over: what is meant for it goes to the one at the end of its chain. */
export interface Chains {
  /** The run at the end of the chain that this one is in; null where it has not gone on as another. */
  endOf(runId: RunId): Promise<RunId | null>;
  /**
   * Acts on the run, and where it had gone on as another, on that. A chain that goes on meanwhile is followed.
   * @param isOver whether the answer says that the run had ended
   */
  follow<Answer>(
    runId: RunId,
    act: (runId: RunId) => Promise<Answer>,
    isOver: (answer: Answer) => boolean,
  ): Promise<Answer>;
}

/** Each hop leads to the end of the chain as it is then. Whoever is outrun so often gives up. */
const mostHops = 1_000;

export function createChains({ store, call }: Connection): Chains {
  const endOf = async (runId: RunId): Promise<RunId | null> =>
    (await call(() => store.getEnds([runId]))).get(runId)?.chainEnd ?? null;

  return {
    endOf,
    async follow(runId, act, isOver) {
      let answer = await act(runId);
      let at = runId;
      for (let hops = 0; isOver(answer) && hops < mostHops; hops++) {
        const next = await endOf(at);
        if (next === null) break;
        answer = await act(next);
        at = next;
      }
      return answer;
    },
  };
}
