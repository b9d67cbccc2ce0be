import type { RunId } from "../core/ids.ts";
import type { NewMessage, TellAnswer } from "./message.ts";
import type { NewRun } from "./run-record.ts";

/** A message for the run that has a key, and the run to be created where there is none. */
export interface SignalOrStart {
  /** Has a key. Of a run that is there only the workflow must be the same. */
  readonly run: NewRun;
  readonly message: Omit<NewMessage, "runId">;
  /** The run that the message was sealed for; null: it can be read by any. */
  readonly boundTo: RunId | null;
}

/**
 * - `created`: the run was created, now or by an earlier try of the same call; `told` says what became of the message.
 * - `found`: the key's run is `id`; `told` says what became of the message.
 * - `conflict`: the key belongs to a run of another workflow; nothing changed.
 * - `elsewhere`: the message would go to run `id`, and was sealed for another; nothing changed.
 */
export interface SignalOrStartAnswer {
  readonly kind: "created" | "found" | "conflict" | "elsewhere";
  readonly id: RunId;
  readonly told: TellAnswer | null;
}
