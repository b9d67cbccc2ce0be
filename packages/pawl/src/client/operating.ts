import { parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { isDate } from "../core/instant.ts";
import {
  checkDuration,
  checkInteger,
  checkOptions,
  exclude,
  invalidOption,
  type Rule,
} from "../core/options.ts";
import { placeOfMessage } from "../core/payload-codec.ts";
import type { Store } from "../store/store.ts";
import type { Chains } from "./chains.ts";
import type { Connection } from "./connection.ts";
import { assertRunId, ended, notFound } from "./run-id.ts";
import { checkReason } from "./telling.ts";

/** What `reschedule` changes: at least one of them. */
export interface RescheduleOptions {
  /** Lower goes first. Default: as it is. */
  readonly priority?: number;
  /** Not before this instant; one that has passed is now. Default: as it is. */
  readonly at?: Date;
  /** Not before this long from now; 0 is now. Default: as it is. */
  readonly delay?: Duration;
}

/** What operators do to a run. */
export interface Operating {
  terminate(runId: RunId, reason?: string): Promise<void>;
  reschedule(runId: RunId, options: RescheduleOptions): Promise<void>;
}

const somethingToDo: Rule = {
  of: ["priority", "at", "delay"],
  check: (_, names) =>
    names.length > 0
      ? null
      : { kind: "said", option: "at", message: "reschedule needs one of priority, at and delay." },
};

export function createOperating(connection: Connection, chains: Chains): Operating {
  const { store, storeClock, payloads, call } = connection;

  return {
    async terminate(runId, reason) {
      assertRunId(runId);
      const fault = reason === undefined ? null : checkReason(reason);
      if (typeof fault === "string") throw invalidOption("terminate", "reason", fault);
      const said = { reason: reason ?? null, terminated: true };
      const end = (id: RunId): ReturnType<Store["terminate"]> => {
        const data = payloads.encode(said, placeOfMessage(id, "cancel"), "The reason");
        return call(() => store.terminate(id, data));
      };
      const answer = await chains.follow(runId, end, (said) => said === "ended");
      if (answer === "missing") throw notFound(runId);
    },
    async reschedule(runId, options) {
      assertRunId(runId);
      const { priority, at, delay } = checkOptions<RescheduleOptions>(
        "reschedule",
        options,
        {
          priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
          at: (value) => (isDate(value) ? null : "must be a valid Date"),
          delay: checkDuration,
        },
        { rules: [exclude("delay", "at"), somethingToDo] },
      );
      await call(() => storeClock.learn());
      const delayMs = delay === undefined ? undefined : parseDuration(delay);
      const later = delayMs === 0 ? null : delayMs && Math.ceil(storeClock.now() + delayMs);
      const startAt = at === undefined ? later : Math.max(0, at.getTime());
      const answer = await chains.follow(
        runId,
        (id) => call(() => store.reschedule({ runId: id, priority, startAt })),
        (said) => said === "ended",
      );
      if (answer === "missing") throw notFound(runId);
      if (answer === "ended") throw ended(runId, "has ended and cannot be rescheduled");
      if (answer === "begun")
        throw new PawlError("RUN_BEGUN", `Run ${runId} has begun: it is too late to reschedule it.`, {
          runId,
        });
    },
  };
}
