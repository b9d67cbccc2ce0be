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
  readonly isPaused: boolean;
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
  let isUndoing = history.some(({ kind }) => kind === "undo_began");
  let stop: Stop | null = requested === undefined ? null : stopOf(requested);
  let cancelData = requested?.data ?? null;

  const obeyCancel = (): void => {
    const [cancel] = inbox.on("cancel");
    if (cancel === undefined) return;
    holding.add({ kind: "cancel_requested", name: null, data: cancel.data, takes: inbox.take(cancel) });
    stop = "cancelled";
    cancelData = cancel.data;
  };

  const obeyDeadline = (): void => {
    if (claimed.deadlineAt === null || holding.time.reached < claimed.deadlineAt) return;
    holding.add({ kind: "cancel_requested", name: deadlineName, data: null });
    stop = "timed_out";
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

  return {
    get stop() {
      return stop;
    },
    get cancelData() {
      return cancelData;
    },
    get isPaused() {
      return (stop === null || isUndoing) && inbox.on("pause").length > 0;
    },
    obey() {
      if (stop === null && !isUndoing) obeyCancel();
      if (stop === null && !isUndoing) obeyDeadline();
      if (stop === null || isUndoing) obeyResume();
    },
    get isUndoing() {
      return isUndoing;
    },
    undo() {
      isUndoing = true;
      // A pause from before the order to stop was made void by it.
      if (stop !== null) for (const message of inbox.on("pause", "resume")) voidPause(message);
    },
    pause() {
      if (!isPauseNoted) holding.add({ kind: "paused", name: null, data: null });
      isPauseNoted = true;
    },
  };
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
