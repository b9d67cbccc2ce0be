import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import { endStatuses, liveStatuses, statusOfParked, type RunStatus } from "../core/run-status.ts";
import type {
  AttemptRecord,
  Backlog,
  ChildRecord,
  FoundEnd,
  PatchUse,
  RunCount,
  RunFilter,
  RunPage,
  RunRecord,
} from "../store/run-record.ts";
import { chainEndOf } from "./continue.ts";
import { compareText } from "./sorted-list.ts";
import { runOf, type Run, type State } from "./state.ts";

export function getRun(state: State, runId: RunId): RunRecord | null {
  const run = state.runs.get(runId);
  return run ? recordOf(run) : null;
}

export function getEnds(state: State, runIds: readonly RunId[]): ReadonlyMap<RunId, FoundEnd | null> {
  const ends = new Map<RunId, FoundEnd | null>();
  for (const runId of runIds) {
    const run = state.runs.get(runId);
    if (!run) continue;
    const { end } = run;
    const chain = run.continuedAs === null ? {} : { chainEnd: chainEndOf(state, run).id };
    ends.set(runId, end && { status: end.status, output: end.output, error: end.error, ...chain });
  }
  return ends;
}

export function listRuns(state: State, filter: RunFilter): RunPage {
  const { before, after, limit, look } = filter;
  const runs: RunRecord[] = [];
  let looked = 0;
  for (const runId of state.runIds.list().toReversed()) {
    if (before !== undefined && runId >= before) continue;
    if (after !== undefined && runId <= after) break;
    const run = runOf(state, runId);
    if (!leads(run, filter)) continue;
    looked += 1;
    if (matches(run, filter)) runs.push(recordOf(run));
    if (runs.length === limit || looked === look) return { runs, next: runId };
  }
  return { runs, next: null };
}

/** Whether the narrowest filter finds it: what it does not find is not looked at. */
function leads(run: Run, { errorCode, tags, status }: RunFilter): boolean {
  if (errorCode !== undefined) return run.end !== null && errorCodeOf(run.end.error) === errorCode;
  if (tags !== undefined) return run.tags.includes(tags[0] ?? "");
  if (status === "waiting") return run.room?.kind === "parked";
  return status === undefined || status === "completed" || statusOf(run) === status;
}

function matches(run: Run, { status, workflow, queue, tags }: RunFilter): boolean {
  return (
    (status === undefined || statusOf(run) === status) &&
    (workflow === undefined || run.workflow === workflow) &&
    (queue === undefined || run.queue === queue) &&
    (tags === undefined || tags.every((tag) => run.tags.includes(tag)))
  );
}

/** What a recorded error says of its kind. */
export function errorCodeOf(error: Payload | null): string | null {
  if (error === null) return null;
  const { code } = JSON.parse(error.json) as { readonly code?: string | number };
  return code === undefined ? null : String(code);
}

export function countRuns(state: State): readonly RunCount[] {
  const counts = new Map<RunStatus, number>();
  for (const run of state.runs.values()) counts.set(statusOf(run), (counts.get(statusOf(run)) ?? 0) + 1);
  return [...liveStatuses, ...endStatuses].map((status) => ({
    status,
    count: counts.get(status) ?? 0,
    isExact: true,
  }));
}

export function readBacklog(state: State, most: number): readonly Backlog[] {
  const lanes = new Map<string, Backlog>();
  for (const run of state.runs.values()) {
    if (run.room?.kind !== "ready") continue;
    const { queue, workflow, version } = run;
    const name = JSON.stringify([queue, workflow, version]);
    const there = lanes.get(name);
    const count = Math.min(most, (there?.count ?? 0) + 1);
    const oldestAt = Math.min(there?.oldestAt ?? Infinity, run.room.mark.readyAt);
    lanes.set(name, { queue, workflow, version, count, isExact: count < most, oldestAt });
  }
  return [...lanes.values()].sort(
    (a, b) => compareText(a.queue, b.queue) || compareText(a.workflow, b.workflow) || a.version - b.version,
  );
}

export function listPatches(state: State, workflow: string, version: number): readonly PatchUse[] {
  const all = [...state.runs.values()].filter((run) => run.workflow === workflow && run.version === version);
  const since = new Map<string, number>();
  const patchesOf = (run: Run): readonly RunEvent[] =>
    [...run.events.values()].filter(({ kind }) => kind === "patched");
  for (const { name, at } of all.flatMap(patchesOf))
    since.set(name ?? "", Math.min(at, since.get(name ?? "") ?? Infinity));
  const live = all.filter(({ room }) => room !== null);
  return [...since]
    .sort(([a, sinceA], [b, sinceB]) => sinceA - sinceB || compareText(a, b))
    .map(([patch, at]) => {
      const others = live.filter((run) => patchesOf(run).every(({ name }) => name !== patch));
      const olderRuns = others.filter(({ createdAt }) => createdAt < at).length;
      const runs = live.length - others.length;
      return { patch, since: at, runs, olderRuns, newerRuns: others.length - olderRuns };
    });
}

const outcomes: Partial<Record<RunEvent["kind"], AttemptRecord["outcome"]>> = {
  attempt_failed: "failed",
  attempt_crashed: "crashed",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  timed_out: "timed_out",
};

export function listAttempts(state: State, runId: RunId): readonly AttemptRecord[] {
  const events = loadHistory(state, runId, 0);
  return events.flatMap(({ seq, kind, attempt, beganAt, at, workerId, data }, index) => {
    const outcome = outcomes[kind];
    if (outcome === undefined || attempt === null) return [];
    const worker = state.workers.get(workerId ?? "");
    const hasFailed = outcome === "failed";
    const goesOn = kind === "attempt_crashed" && events[index + 1]?.kind !== "failed";
    return {
      seq,
      attempt,
      outcome,
      willRetry: kind === "attempt_failed" || goesOn,
      beganAt,
      endedAt: at,
      error: hasFailed ? data : null,
      workerId,
      host: worker?.asRegistered.host ?? null,
      pid: worker?.asRegistered.pid ?? null,
    };
  });
}

export function listChildren(
  state: State,
  runId: RunId,
  after: RunId | null,
  limit: number,
): readonly ChildRecord[] {
  const ids = [...(state.runs.get(runId)?.childIds ?? [])].filter((id) => after === null || id > after);
  return ids
    .sort(compareText)
    .slice(0, limit)
    .map((id) => {
      const run = runOf(state, id);
      const { status, epoch, createdAt, endedAt, error } = recordOf(run);
      return { id, request: run.parentRequest ?? "", status, epoch, createdAt, endedAt, error };
    });
}

export function loadHistory(state: State, runId: RunId, afterSeq: number): readonly RunEvent[] {
  const events = [...(state.runs.get(runId)?.events.values() ?? [])];
  return events.filter((event) => event.seq > afterSeq).sort((a, b) => a.seq - b.seq);
}

function recordOf(run: Run): RunRecord {
  const { room, end } = run;
  const parked = room?.kind === "parked" ? room : null;
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    priority: run.priority,
    status: statusOf(run),
    key: run.key,
    tags: run.tags,
    parentId: run.parentId,
    rootId: run.rootId,
    depth: run.depth,
    forkedFrom: run.forkedFrom,
    retry: run.retry,
    firstId: run.firstId,
    continuedAs: run.continuedAs,
    epoch: room?.epoch ?? end?.epoch ?? 0,
    attempt: room?.attempt ?? end?.attempt ?? 1,
    workerId: room?.kind === "lease" ? room.workerId : null,
    parkReason: parked?.reason ?? null,
    dueAt: parked?.dueAt ?? null,
    wants: parked?.wants ?? null,
    createdAt: run.createdAt,
    startAt: run.startAt,
    expiresAt: run.expiresAt,
    deadlineAt: run.deadlineAt,
    endedAt: end?.endedAt ?? null,
    input: run.input,
    output: end?.output ?? null,
    error: end?.error ?? null,
  };
}

function statusOf(run: Run): RunStatus {
  if (run.end) return run.end.status;
  switch (run.room?.kind) {
    case "ready":
      return "pending";
    case "lease":
      return "running";
    case "parked":
      return statusOfParked(run.room.reason);
    case undefined:
      throw new PawlError("INTERNAL", `Run ${run.id} has not ended and is in no room: please report this.`);
    default:
      return run.room satisfies never;
  }
}
