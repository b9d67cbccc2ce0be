import { cancelReason } from "../core/cancel-error.ts";
import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import { deadlineName } from "../core/fact.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Message } from "../store/message.ts";
import type { Holding } from "./holding.ts";
import type { Inbox } from "./inbox.ts";

export type Stop = "cancelled" | "timed_out";

/** What others demand of the run: to be cancelled, to pause, to go on; and its deadline, which demands an end too. */
export interface Orders {
  /** The run is to end like this, whatever its code does. */
  readonly stop: Stop | null;
  /** What came with the cancel, such as its reason. */
  readonly cancelData: Payload | null;
  isPaused(): boolean;
  /** What the run did is undone: how it ends is settled, and only a pause holds it up. */
  readonly isUndoing: boolean;
  undo(): void;
  /** Turns what has been read, and the time, into facts. */
  obey(): void;
  /** The run pauses now: adds that fact, once for each time it does. */
  pause(): void;
}

export function createOrders(
  claimed: ClaimedRun,
  history: readonly RunEvent[],
  inbox: Inbox,
  holding: Holding,
): Orders {
  const requested = history.find((event) => event.kind === "cancel_requested");
  let isPauseNoted = false;

  const obeyCancel = (): void => {
    const [cancel] = inbox.on("cancel");
    if (cancel === undefined) return;
    holding.add({ kind: "cancel_requested", name: null, data: cancel.data, takes: inbox.take(cancel) });
    orders.stop = "cancelled";
    orders.cancelData = cancel.data;
  };

  const obeyDeadline = (): void => {
    if (claimed.deadlineAt === null || holding.time.reached < claimed.deadlineAt) return;
    holding.add({ kind: "cancel_requested", name: deadlineName, data: null });
    orders.stop = "timed_out";
  };

  /** A resume makes every pause before it void, and is spent by that. A pause that holds stays unread. */
  const obeyResume = (): void => {
    const messages = inbox.on("pause", "resume");
    const newest = messages.findLastIndex(({ topic }) => topic === "resume");
    for (const message of messages.slice(0, newest + 1)) voidPause(message);
  };

  const voidPause = (message: Message): void => {
    holding.add({ kind: "resumed", name: null, data: null, takes: inbox.take(message) });
    isPauseNoted = false;
  };

  const orders = {
    stop: requested === undefined ? null : stopOf(requested),
    cancelData: requested?.data ?? null,
    isUndoing: history.some(({ kind }) => kind === "undo_began"),
    isPaused: () => (orders.stop === null || orders.isUndoing) && inbox.on("pause").length > 0,
    obey() {
      if (orders.stop === null && !orders.isUndoing) obeyCancel();
      if (orders.stop === null && !orders.isUndoing) obeyDeadline();
      if (orders.stop === null || orders.isUndoing) obeyResume();
    },
    undo() {
      orders.isUndoing = true;
      // A pause from before the order to stop was made void by it.
      if (orders.stop !== null) for (const message of inbox.on("pause", "resume")) voidPause(message);
    },
    pause() {
      if (!isPauseNoted) holding.add({ kind: "paused", name: null, data: null });
      isPauseNoted = true;
    },
  };
  return orders;
}

/** What code and steps get to hear: why, too, where the cancel said so. */
export function stopError(stop: Stop, runId: RunId, cancelData: Payload | null): PawlError {
  if (stop === "timed_out") return new PawlError("RUN_TIMED_OUT", `Run ${runId} has timed out.`, { runId });
  const reason = cancelReason(cancelData);
  const because = reason === null ? "." : `: ${reason}`;
  return new PawlError("RUN_CANCELLED", `Run ${runId} was cancelled${because}`, { runId, reason });
}

export function stopOf(cancelRequested: RunEvent): Stop {
  return cancelRequested.name === deadlineName ? "timed_out" : "cancelled";
}
