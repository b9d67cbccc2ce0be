import type { RunId } from "../core/ids.ts";
import { checkOneOf, checkOptions } from "../core/options.ts";
import type { RunRecord } from "../store/run-record.ts";
import type { RedriveTerms } from "../store/store.ts";
import type { Chains } from "./chains.ts";
import type { Connection } from "./connection.ts";
import { assertRunId, ended, notFound } from "./run-id.ts";

/** What `retry` and `retryAll` take. */
export interface RunRetryOptions {
  /**
   * `"start"`: the run begins anew with its input, also one that completed. Its history is kept, and nothing of it is
   * remembered. Default: it goes on where it failed, and what it had finished is kept.
   */
  readonly from?: "start";
}

/** @throws {PawlError} `INVALID_OPTION` */
export function readRetryOptions(what: string, options: RunRetryOptions): Pick<RedriveTerms, "from"> {
  return checkOptions<RunRetryOptions>(what, options, { from: checkOneOf("start") });
}

export function createRetrying(
  { store, call }: Pick<Connection, "store" | "call">,
  chains: Chains,
): (runId: RunId, options?: RunRetryOptions) => Promise<void> {
  return async (runId, options = {}) => {
    assertRunId(runId);
    const terms = readRetryOptions("retry", options);
    const find = (id: RunId): Promise<RunRecord | null> => call(() => store.getRun(id));
    const run = await chains.follow(runId, find, (found) => found?.continuedAs != null);
    if (run === null) throw notFound(runId);
    const { id, endedAt: at } = run;
    if (at === null) return;
    // However often the call is repeated, it gives one life.
    const endedAt = new Map([[id, at]]);
    const answer = (await call(() => store.redrive([id], { ...terms, endedAt }))).get(id) ?? "missing";
    if (answer === "missing") throw notFound(runId);
    if (answer === "completed") throw ended(runId, "has completed: there is nothing left to do");
  };
}
