import { parseDuration, type Duration } from "../core/duration.ts";
import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { isDate } from "../core/instant.ts";
import {
  checkDuration,
  checkFlag,
  checkInteger,
  checkOneOf,
  checkOptions,
  exclude,
  invalidOption,
  type Rule,
} from "../core/options.ts";
import { placeOfMessage } from "../core/payload-codec.ts";
import { endStatuses } from "../core/run-status.ts";
import type { RedriveAnswer, Store } from "../store/store.ts";
import type { Chains } from "./chains.ts";
import type { Connection } from "./connection.ts";
import { filterChecks, type ListFilter, type Reading } from "./reading.ts";
import { assertRunId, ended, notFound } from "./run-id.ts";
import { checkReason } from "./telling.ts";

export interface RescheduleOptions {
  /** Lower goes first. Default: as it is. */
  readonly priority?: number;
  /** Not before this instant; one that has passed is now. Default: as it is. */
  readonly at?: Date;
  /** Not before this long from now; 0 is now. Default: as it is. */
  readonly delay?: Duration;
}

/** Which runs to redrive: as for `list`, all of those that ended with this status. */
export interface RedriveFilter extends Omit<ListFilter, "status" | "before" | "limit"> {
  /** Default `failed`: the dead letters. */
  readonly status?: "failed" | "cancelled" | "timed_out" | "expired";
  /** At most so many, newest first. Default: all. */
  readonly limit?: number;
  /**
   * True: child runs too. Default false: a parent that is redriven starts its failed children anew, and what they do would
   * be done twice.
   */
  readonly children?: boolean;
}

/** What operators do to runs. */
export interface Operating {
  terminate(runId: RunId, reason?: string): Promise<void>;
  redrive(runId: RunId): Promise<void>;
  redriveAll(filter?: RedriveFilter): Promise<number>;
  reschedule(runId: RunId, options: RescheduleOptions): Promise<void>;
}

const runsPerRedrive = 500;

const checkStopped = checkOneOf(...endStatuses.filter((status) => status !== "completed"));

const somethingToDo: Rule = {
  of: ["priority", "at", "delay"],
  check: (_, names) =>
    names.length > 0
      ? null
      : { kind: "said", option: "at", message: "reschedule needs one of priority, at and delay." },
};

export function createOperating(connection: Connection, { list }: Reading, chains: Chains): Operating {
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
    async redrive(runId) {
      assertRunId(runId);
      const revive = async (id: RunId): Promise<RedriveAnswer> =>
        (await call(() => store.redrive([id]))).get(id) ?? "missing";
      const answer = await chains.follow(runId, revive, (said) => said === "completed");
      if (answer === "missing") throw notFound(runId);
      if (answer === "completed") throw ended(runId, "has completed: there is nothing left to do");
    },
    async redriveAll(options = {}) {
      const checks = {
        ...filterChecks,
        status: checkStopped,
        children: checkFlag,
        limit: checkInteger(1, Number.MAX_SAFE_INTEGER),
      };
      const given = checkOptions<RedriveFilter>("redriveAll", options, checks);
      const { status = "failed", limit = Number.MAX_SAFE_INTEGER, children = false, ...filter } = given;
      let redriven = 0;
      let before: RunId | null = null;
      for (;;) {
        const size = Math.min(runsPerRedrive, limit - redriven);
        if (size <= 0) return redriven;
        const from: { readonly before?: RunId } = before === null ? {} : { before };
        const page = await list({ ...filter, status, limit: size, ...from });
        const ids = page.runs.flatMap(({ id, parentId }) => (children || parentId === null ? [id] : []));
        const answers = ids.length === 0 ? [] : [...(await call(() => store.redrive(ids))).values()];
        redriven += answers.filter((answer) => answer === "redriven").length;
        before = page.next;
        if (before === null) return redriven;
      }
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
