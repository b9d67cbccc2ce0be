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
  /** Whether the run was resumed since this was last asked: its holder has read so. */
  takeResumed(): boolean;
  /** The run pauses now: adds that fact, once for each time it does. */
  pause(): void;
}

export function createOrders(
  claimed: ClaimedRun,
  history: readonly RunEvent[],
  inbox: Inbox,
  holding: Holding,
): Orders {
  return new RunOrders(claimed, history, inbox, holding);
}

class RunOrders implements Orders {
  stop: Stop | null;
  cancelData: Payload | null;
  isUndoing: boolean;
  readonly #claimed: ClaimedRun;
  readonly #inbox: Inbox;
  readonly #holding: Holding;
  #isPauseNoted = false;
  #isResumed = false;

  constructor(claimed: ClaimedRun, history: readonly RunEvent[], inbox: Inbox, holding: Holding) {
    const requested = history.find((event) => event.kind === "cancel_requested");
    this.stop = requested === undefined ? null : stopOf(requested);
    this.cancelData = requested?.data ?? null;
    this.isUndoing = history.some(({ kind }) => kind === "undo_began");
    this.#claimed = claimed;
    this.#inbox = inbox;
    this.#holding = holding;
  }

  isPaused(): boolean {
    if (this.#inbox.isEmpty() || (this.stop !== null && !this.isUndoing)) return false;
    return this.#inbox.on("pause").length > 0;
  }

  obey(): void {
    if (this.stop === null && !this.isUndoing) this.#obeyCancel();
    if (this.stop === null && !this.isUndoing) this.#obeyDeadline();
    if (this.stop === null || this.isUndoing) this.#obeyResume();
  }

  undo(): void {
    this.isUndoing = true;
    // A pause from before the order to stop was made void by it.
    if (this.stop !== null) for (const message of this.#inbox.on("pause", "resume")) this.#voidPause(message);
  }

  takeResumed(): boolean {
    const taken = this.#isResumed;
    this.#isResumed = false;
    return taken;
  }

  pause(): void {
    if (!this.#isPauseNoted) this.#holding.add({ kind: "paused", name: null, data: null });
    this.#isPauseNoted = true;
  }

  #obeyCancel(): void {
    if (this.#inbox.isEmpty()) return;
    const [cancel] = this.#inbox.on("cancel");
    if (cancel === undefined) return;
    const takes = this.#inbox.take(cancel);
    this.#holding.add({ kind: "cancel_requested", name: null, data: cancel.data, takes });
    this.stop = "cancelled";
    this.cancelData = cancel.data;
  }

  #obeyDeadline(): void {
    const { deadlineAt } = this.#claimed;
    if (deadlineAt === null || this.#holding.time.reached < deadlineAt) return;
    this.#holding.add({ kind: "cancel_requested", name: deadlineName, data: null });
    this.stop = "timed_out";
  }

  /** A resume makes every pause before it void, and is spent by that. A pause that holds stays unread. */
  #obeyResume(): void {
    if (this.#inbox.isEmpty()) return;
    const messages = this.#inbox.on("pause", "resume");
    const newest = messages.findLastIndex(({ topic }) => topic === "resume");
    for (const message of messages.slice(0, newest + 1)) this.#voidPause(message);
    this.#isResumed ||= newest >= 0;
  }

  #voidPause(message: Message): void {
    this.#holding.add({ kind: "resumed", name: null, data: null, takes: this.#inbox.take(message) });
    this.#isPauseNoted = false;
  }
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
