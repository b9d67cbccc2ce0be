import { snapshotPayload, type StoreSnapshot } from "../store/snapshot.ts";
import { errorCodeOf } from "./read.ts";
import { numbersOf } from "./rooms.ts";
import { compareText } from "./sorted-list.ts";
import { runOf, type Run, type State } from "./state.ts";

export function takeSnapshot(state: State): StoreSnapshot {
  const runs = state.runIds.list().map((runId) => runOf(state, runId));
  return {
    runs: runs.map(snapshotRun),
    ...snapshotRooms(runs),
    events: runs.flatMap((run) =>
      [...run.events.values()]
        .sort((a, b) => a.seq - b.seq)
        .map((event) => ({ runId: run.id, ...event, data: snapshotPayload(event.data) })),
    ),
    inbox: runs.flatMap((run) =>
      [...run.inbox.values()]
        .sort((a, b) => compareText(a.id, b.id))
        .map((message) => ({ runId: run.id, ...message, data: snapshotPayload(message.data) })),
    ),
    streams: runs.flatMap((run) =>
      [...run.streams]
        .sort(([a], [b]) => compareText(a, b))
        .flatMap(([name, items]) =>
          items.map((item) => ({ runId: run.id, name, ...item, data: snapshotPayload(item.data) })),
        ),
    ),
    keys: [...state.keys].map(([key, runId]) => ({ key, runId })).sort((a, b) => compareText(a.key, b.key)),
    workers: [...state.workers.values()]
      .map(({ id, leaseMs, heardAt, endedAt, heldAtEnd }) => ({ id, leaseMs, heardAt, endedAt, heldAtEnd }))
      .sort((a, b) => compareText(a.id, b.id)),
    stopped: runs.flatMap(({ id: runId, end }) =>
      end === null || end.status === "completed"
        ? []
        : { runId, status: end.status, errorCode: errorCodeOf(end.error), endedAt: end.endedAt },
    ),
    tags: runs
      .flatMap(({ id: runId, tags }) => [...new Set(tags)].map((tag) => ({ tag, runId })))
      .sort((a, b) => compareText(a.tag, b.tag) || compareText(a.runId, b.runId)),
  };
}

function snapshotRun(run: Run): StoreSnapshot["runs"][number] {
  const { end } = run;
  return {
    id: run.id,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    priority: run.priority,
    input: snapshotPayload(run.input),
    isRaw: run.isRaw,
    key: run.key,
    tags: run.tags,
    retry: run.retry,
    startAt: run.startAt,
    expiresAt: run.expiresAt,
    deadlineAt: run.deadlineAt,
    parentId: run.parentId,
    parentRequest: run.parentRequest,
    rootId: run.rootId,
    depth: run.depth,
    isDetached: run.isDetached,
    forkedFrom: run.forkedFrom,
    firstId: run.firstId,
    continuedAs: run.continuedAs,
    createdAt: run.createdAt,
    status: end?.status ?? null,
    output: snapshotPayload(end?.output ?? null),
    error: snapshotPayload(end?.error ?? null),
    endedAt: end?.endedAt ?? null,
    epoch: end?.epoch ?? null,
    attempt: end?.attempt ?? null,
  };
}

function snapshotRooms(runs: readonly Run[]): Pick<StoreSnapshot, "ready" | "lease" | "parked"> {
  const ready: StoreSnapshot["ready"][number][] = [];
  const lease: StoreSnapshot["lease"][number][] = [];
  const parked: StoreSnapshot["parked"][number][] = [];
  for (const { id: runId, room } of runs) {
    if (!room) continue;
    const row = { runId, ...numbersOf(room) };
    switch (room.kind) {
      case "ready":
        ready.push({ ...row, told: room.told, readyAt: room.mark.readyAt, expiresAt: room.expiresAt });
        break;
      case "lease": {
        const { told, workerId, claimedAt, begunAt, crashLimit } = room;
        lease.push({ ...row, told, workerId, claimedAt, begunAt, crashLimit });
        break;
      }
      case "parked":
        parked.push({
          ...row,
          reason: room.reason,
          dueAt: room.dueAt,
          wants: [...room.wants].sort(compareText),
          fires: room.fires,
        });
        break;
      default:
        room satisfies never;
    }
  }
  return { ready, lease, parked };
}
