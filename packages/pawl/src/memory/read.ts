import { PawlError } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { RunId } from "../core/ids.ts";
import { statusOfParked, type RunStatus } from "../core/run-status.ts";
import type { RunEnd, RunFilter, RunRecord } from "../store/run-record.ts";
import { runOf, type Run, type State } from "./state.ts";

export function getRun(state: State, runId: RunId): RunRecord | null {
  const run = state.runs.get(runId);
  return run ? recordOf(run) : null;
}

export function getEnds(state: State, runIds: readonly RunId[]): ReadonlyMap<RunId, RunEnd | null> {
  const ends = new Map<RunId, RunEnd | null>();
  for (const runId of runIds) {
    const run = state.runs.get(runId);
    if (!run) continue;
    ends.set(runId, run.end && { status: run.end.status, output: run.end.output, error: run.end.error });
  }
  return ends;
}

export function listRuns(state: State, filter: RunFilter): readonly RunRecord[] {
  const found: RunRecord[] = [];
  for (const runId of state.runIds.list().toReversed()) {
    if (found.length >= filter.limit) break;
    if (filter.before !== undefined && runId >= filter.before) continue;
    const run = runOf(state, runId);
    if (filter.workflow !== undefined && run.workflow !== filter.workflow) continue;
    if (filter.queue !== undefined && run.queue !== filter.queue) continue;
    if (filter.status !== undefined && statusOf(run) !== filter.status) continue;
    found.push(recordOf(run));
  }
  return found;
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
    parentId: run.parentId,
    rootId: run.rootId,
    depth: run.depth,
    epoch: room?.epoch ?? null,
    attempt: room?.attempt ?? null,
    workerId: room?.kind === "lease" ? room.workerId : null,
    parkReason: parked?.reason ?? null,
    dueAt: parked?.dueAt ?? null,
    wants: parked?.wants ?? null,
    createdAt: run.createdAt,
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
