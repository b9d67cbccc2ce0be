import type { RunId } from "../core/ids.ts";
import {
  checkFlag,
  checkInteger,
  checkOneOf,
  checkOptions,
  invalidOption,
  type Check,
  type Checks,
} from "../core/options.ts";
import {
  endStatuses,
  liveStatuses,
  type EndStatus,
  type LiveStatus,
  type RunStatus,
} from "../core/run-status.ts";
import type { RunRecord } from "../store/run-record.ts";
import type { RedriveTerms } from "../store/store.ts";
import type { Connection } from "./connection.ts";
import { filterChecks, type ListFilter, type Reading } from "./reading.ts";
import { readRetryOptions, type RunRetryOptions } from "./retrying.ts";
import { checkReason, type Tell } from "./telling.ts";

interface AnyFilter extends Omit<ListFilter, "status" | "before" | "limit"> {
  /** At most so many, newest first. Default: all. */
  readonly limit?: number;
}

/** Which live runs: as for `list`. */
export interface LiveFilter extends AnyFilter {
  /** Default: every live one that it would change. */
  readonly status?: LiveStatus;
}

/** Which runs to retry: as for `list`, all of those that ended with this status. */
export interface RetryFilter extends AnyFilter {
  /** Default `failed`: the dead letters. `completed` only with `from: "start"`. */
  readonly status?: EndStatus;
  /**
   * True: child runs too. Default false: a parent that is retried starts its failed children anew, and what they do would
   * be done twice.
   */
  readonly children?: boolean;
}

/** What `cancelAll` takes beside its filter. */
export interface CancelAllOptions {
  /** Kept in each run's history. Default: none. */
  readonly reason?: string;
}

/** What operators do to all runs that fit. */
export interface ByFilter {
  cancelAll(filter: LiveFilter, options?: CancelAllOptions): Promise<number>;
  pauseAll(filter: LiveFilter): Promise<number>;
  resumeAll(filter: LiveFilter): Promise<number>;
  retryAll(filter?: RetryFilter, options?: RunRetryOptions): Promise<number>;
  redriveAll(filter?: RetryFilter, options?: RunRetryOptions): Promise<number>;
}

const runsPerPage = 500;
/**
 * Runs move from status to status, also to one that was just looked at: so they are looked at twice at least, until no other shows
 * up, but not for ever.
 */
const mostPasses = 10;

const limit = checkInteger(1, Number.MAX_SAFE_INTEGER);

export function createByFilter(
  { store, call }: Pick<Connection, "store" | "call">,
  find: Reading["find"],
  tell: Tell,
): ByFilter {
  /** Acts on all runs that fit, a page at a time and on each once. `act` answers how many it has changed. */
  const forAll = async (
    { limit: most = Infinity, ...filter }: AnyFilter,
    statuses: readonly RunStatus[],
    act: (records: readonly RunRecord[]) => Promise<number>,
  ): Promise<number> => {
    const seen = new Set<RunId>();
    let changed = 0;
    for (let pass = 0; pass < mostPasses; pass++) {
      const seenBefore = seen.size;
      for (const status of statuses) {
        for (let before: RunId | undefined; ;) {
          const size = Math.min(runsPerPage, most - changed);
          if (size <= 0) return changed;
          const from = before === undefined ? {} : { before };
          const page = await find({ ...filter, status, limit: size, ...from });
          const fresh = page.records.filter(({ id }) => !seen.has(id));
          for (const { id } of fresh) seen.add(id);
          if (fresh.length > 0) changed += await act(fresh);
          if (page.next === null) break;
          before = page.next;
        }
      }
      if (statuses.length === 1 || (pass > 0 && seen.size === seenBefore)) break;
    }
    return changed;
  };

  const tellAll = async (
    what: string,
    given: LiveFilter,
    statuses: readonly LiveStatus[],
    tellOne: (runId: RunId) => ReturnType<Tell>,
  ): Promise<number> => {
    const checks = { ...filterChecks, status: checkOneOf(...liveStatuses), limit };
    const { status, ...filter } = checkFilter<LiveFilter>(what, given, checks);
    return forAll(filter, status === undefined ? statuses : [status], async (records) => {
      const answers = await Promise.all(records.map(({ id }) => tellOne(id)));
      return answers.filter(({ answer }) => answer === "accepted").length;
    });
  };

  const retryAll: ByFilter["retryAll"] = async (given = {}, options = {}) => {
    const checks = { ...filterChecks, status: checkEnd, children: checkFlag, limit };
    const filter = checkFilter<RetryFilter>("retryAll", given, checks);
    const { status = "failed", children = false, ...rest } = filter;
    const terms = readRetryOptions("retryAll", options);
    if (status === "completed" && terms.from === undefined)
      throw invalidOption("retryAll", "status", 'can be "completed" only with { from: "start" }');
    return forAll(rest, [status], async (records) => {
      const runs = records.filter(({ parentId }) => children || parentId === null);
      if (runs.length === 0) return 0;
      const endedAt = new Map(
        runs.flatMap(({ id, endedAt: at }) => (at === null ? [] : [[id, at] as const])),
      );
      const all: RedriveTerms = { ...terms, endedAt };
      const answers = await call(() => store.redrive([...endedAt.keys()], all));
      return [...answers.values()].filter((answer) => answer === "redriven").length;
    });
  };

  return {
    async cancelAll(filter, options = {}) {
      const { reason = null } = checkOptions<CancelAllOptions>("cancelAll", options, { reason: checkReason });
      return tellAll("cancelAll", filter, liveStatuses, (runId) => tell(runId, "cancel", { reason }));
    },
    async pauseAll(filter) {
      const notPaused = liveStatuses.filter((status) => status !== "paused");
      return tellAll("pauseAll", filter, notPaused, (runId) => tell(runId, "pause"));
    },
    async resumeAll(filter) {
      return tellAll("resumeAll", filter, ["paused"], (runId) => tell(runId, "resume"));
    },
    retryAll,
    redriveAll: retryAll,
  };
}

const checkEnd: Check = checkOneOf(...endStatuses);

/** A variable that happens to be undefined must not widen what is meant for some runs to all of them. */
function checkFilter<Filter extends object>(what: string, given: Filter, checks: Checks): Filter {
  const filter = checkOptions(what, given, checks);
  for (const [name, value] of Object.entries(given))
    if (value === undefined)
      throw invalidOption(what, name, "is undefined: leave it out if you mean every run");
  return filter;
}
