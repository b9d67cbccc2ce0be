import { idsFrom, isRunId, type RunId } from "../core/ids.ts";
import { isDate } from "../core/instant.ts";
import { checkInteger, checkList, checkName, checkOneOf, checkOptions, checkRunId } from "../core/options.ts";
import { endStatuses, liveStatuses, type RunStatus } from "../core/run-status.ts";
import type { ChildRecord, RunFilter, RunRecord } from "../store/run-record.ts";
import { readAttempt, type Attempt } from "./attempt.ts";
import type { Chains } from "./chains.ts";
import type { Connection } from "./connection.ts";
import { readNodeViews, type NodeView } from "./node-view.ts";
import { assertRunId, assertText, notFound } from "./run-id.ts";
import { readHistory, readRun, type HistoryEvent, type Run } from "./run.ts";

/** Which runs: all that is given must hold. Newest first. */
export interface ListFilter {
  readonly status?: RunStatus;
  readonly workflow?: string;
  readonly queue?: string;
  /** The run with this idempotency key. */
  readonly key?: string;
  /** All of them. */
  readonly tags?: readonly string[];
  /** The `code` of the error that they ended with, such as `WORKER_CRASHED`. */
  readonly errorCode?: string;
  /** Started then or later, by the time in their ids. */
  readonly createdAfter?: Date;
  /** Started earlier than that. */
  readonly createdBefore?: Date;
  /** Only runs older than this one: the `next` of the page before. */
  readonly before?: RunId;
  /** Default 100, at most 1000. */
  readonly limit?: number;
}

/** A page of runs, newest first. */
export interface RunPage {
  readonly runs: readonly Run[];
  /**
   * Pass it as `before` to go on; null: there are no more. A filter that no index serves looks at about 100,000 runs a page at
   * most, so a page can be short, or empty, and not be the last.
   */
  readonly next: RunId | null;
}

/** How many runs there are in a status. */
export interface RunCount {
  readonly count: number;
  /** False: about as many, by the database's own statistics. Up to 10,000 are counted. */
  readonly isExact: boolean;
}

/** How many runs there are, by status. */
export type RunCounts = Readonly<Record<RunStatus, RunCount>>;

/** What waits to be claimed of one workflow in one queue. */
export interface Backlog {
  readonly queue: string;
  readonly workflow: string;
  readonly version: number;
  readonly count: number;
  /** False: at least so many. Up to 10,000 are counted. */
  readonly isExact: boolean;
  /** Since when the oldest has been waiting. */
  readonly oldestAt: Date;
}

/** What can be asked about runs. */
export interface Reading {
  get(runId: RunId): Promise<Run | null>;
  readonly list: (filter?: ListFilter) => Promise<RunPage>;
  /** The same as they are stored: what no codec here can read is no hindrance. */
  readonly find: (
    filter: ListFilter,
  ) => Promise<{ readonly records: readonly RunRecord[]; readonly next: RunId | null }>;
  deadLetters(filter?: Omit<ListFilter, "status">): Promise<RunPage>;
  counts(): Promise<RunCounts>;
  backlog(): Promise<readonly Backlog[]>;
  status(runId: RunId): Promise<RunStatus>;
  attempts(runId: RunId): Promise<readonly Attempt[]>;
  nodes(runId: RunId): Promise<readonly NodeView[]>;
  history(runId: RunId): Promise<readonly HistoryEvent[]>;
}

/** Most pages are found at once: the first call looks at few runs more than it wants. */
const fewLooks = 200;
/** After that, one call looks at so many runs, and one page takes so many calls. */
const looksPerCall = 10_000;
const callsPerPage = 10;
const mostCounted = 10_000;

export function createReading({ store, payloads, call }: Connection, chains: Chains): Reading {
  const findRun = async (runId: RunId): Promise<RunRecord | null> => {
    assertText(runId);
    return isRunId(runId) ? call(() => store.getRun(runId)) : null;
  };

  const findChildren = async (runId: RunId): Promise<readonly ChildRecord[]> => {
    const children: ChildRecord[] = [];
    for (;;) {
      const after = children.at(-1)?.id ?? null;
      const found = await call(() => store.listChildren(runId, after, looksPerCall));
      children.push(...found);
      if (found.length < looksPerCall) return children;
    }
  };

  const find: Reading["find"] = async (filter) => {
    const { key, ...wanted } = readFilter(filter);
    if (key !== undefined) {
      const runId = await call(() => store.findKey(key));
      const record = runId === null ? null : await call(() => store.getRun(runId));
      return { records: record !== null && matches(record, wanted) ? [record] : [], next: null };
    }
    const records: RunRecord[] = [];
    let next: RunId | null = wanted.before ?? null;
    for (let calls = 0; calls <= callsPerPage; calls++) {
      const look = calls === 0 ? Math.max(fewLooks, wanted.limit) : looksPerCall;
      const limit = wanted.limit - records.length;
      const from = next === null ? {} : { before: next };
      const page = await call(() => store.listRuns({ ...wanted, ...from, limit, look }));
      records.push(...page.runs);
      ({ next } = page);
      if (next === null || records.length === wanted.limit) break;
    }
    return { records, next };
  };

  const list = async (filter: ListFilter): Promise<RunPage> => {
    const { records, next } = await find(filter);
    return { runs: records.map((record) => readRun(record, payloads)), next };
  };

  return {
    list: (filter = {}) => list(filter),
    find,
    async deadLetters(filter = {}) {
      return list({
        ...checkOptions("deadLetters", filter, { ...filterChecks, ...pageChecks }),
        status: "failed",
      });
    },
    async get(runId) {
      const record = await findRun(runId);
      return record === null ? null : readRun(record, payloads);
    },
    async counts() {
      const counts = await call(() => store.countRuns(mostCounted));
      return Object.fromEntries(
        counts.map(({ status, count, isExact }) => [status, { count, isExact }]),
      ) as unknown as RunCounts;
    },
    async backlog() {
      const lanes = await call(() => store.readBacklog(mostCounted));
      return lanes.map((lane) => ({ ...lane, oldestAt: new Date(lane.oldestAt) }));
    },
    async status(runId) {
      const record = await chains.follow(runId, findRun, (found) => found?.continuedAs != null);
      if (record === null) throw notFound(runId);
      return record.status;
    },
    async attempts(runId) {
      assertRunId(runId);
      const attempts = await call(() => store.listAttempts(runId));
      if (attempts.length === 0 && (await findRun(runId)) === null) throw notFound(runId);
      return attempts.map((attempt) => readAttempt(runId, attempt, payloads));
    },
    async nodes(runId) {
      assertRunId(runId);
      const run = await findRun(runId);
      if (run === null) throw notFound(runId);
      const [published, children] = await Promise.all([
        call(() => store.readPublished(runId, null)),
        findChildren(runId),
      ]);
      return readNodeViews(run, published, children, payloads);
    },
    async history(runId) {
      assertRunId(runId);
      const events = await call(() => store.loadHistory(runId, 0));
      if (events.length === 0 && (await findRun(runId)) === null) throw notFound(runId);
      return readHistory(runId, events, payloads);
    },
  };
}

const checkInstant = (value: unknown): string | null => (isDate(value) ? null : "must be a valid Date");

/** What a filter may say, whatever is done with the runs that it finds. */
export const filterChecks = {
  workflow: checkName,
  queue: checkName,
  key: checkName,
  tags: checkList(checkName, 100),
  errorCode: checkName,
  createdAfter: checkInstant,
  createdBefore: checkInstant,
};
const pageChecks = { before: checkRunId, limit: checkInteger(1, 1_000) };

interface Wanted extends Omit<RunFilter, "look"> {
  readonly key?: string;
}

/** @throws {PawlError} `INVALID_OPTION` */
function readFilter(filter: ListFilter): Wanted {
  const given = checkOptions<ListFilter>("list", filter, {
    status: checkOneOf(...liveStatuses, ...endStatuses),
    ...filterChecks,
    ...pageChecks,
  });
  const { createdAfter, createdBefore, before, limit = 100, ...rest } = given;
  const bound = createdBefore === undefined ? undefined : idsFrom(createdBefore.getTime());
  const first = [before, bound].filter((id) => id !== undefined).sort()[0];
  return {
    ...rest,
    limit,
    ...(first !== undefined && { before: first }),
    ...(createdAfter !== undefined && { after: idsFrom(createdAfter.getTime()) }),
  };
}

/** For the one run that a key finds. */
function matches(record: RunRecord, wanted: Omit<Wanted, "key">): boolean {
  const { status, workflow, queue, tags = [], errorCode, before, after } = wanted;
  const code = errorCode === undefined ? undefined : codeOf(record);
  return (
    (status === undefined || record.status === status) &&
    (workflow === undefined || record.workflow === workflow) &&
    (queue === undefined || record.queue === queue) &&
    tags.every((tag) => record.tags.includes(tag)) &&
    code === errorCode &&
    (before === undefined || record.id < before) &&
    (after === undefined || record.id > after)
  );
}

/** Readable whatever the codec: see `Payloads.encodeError`. */
function codeOf({ error }: RunRecord): string | undefined {
  if (error === null) return undefined;
  const { code } = JSON.parse(error.json) as { readonly code?: string | number };
  return code === undefined ? undefined : String(code);
}
