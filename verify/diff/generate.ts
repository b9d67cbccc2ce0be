import { endStatuses, liveStatuses } from "../../packages/pawl/src/core/run-status.ts";
import type { SnapshotParked } from "../../packages/pawl/src/store/snapshot.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import { generateHolderOperation } from "./generate-holder.ts";
import { generateOperating } from "./generate-operating.ts";
import { generateStart } from "./generate-start.ts";
import { generateTelling } from "./generate-telling.ts";
import { generateClaim, generateWorkerOperation } from "./generate-worker.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

const missingId = "019b76da-0000-7000-8000-000000000000";

/** Something that may well happen next, now and then something that should not. */
export function generateOperation(known: Knowledge): Operation {
  const { dice, snapshot } = known;
  const roll = dice.next();
  // Few runs, so that much happens to each of them.
  const live = snapshot.ready.length + snapshot.lease.length + snapshot.parked.length;
  if (snapshot.parked.some((room) => isTimerDue(room, known)) && dice.chance(0.5))
    return { kind: "wakeDue", calls: [generateWakeDue(known)] };
  if (roll < 0.15 && live < 12) return generateStart(known);
  if (roll < 0.37) return generateWorkerOperation(known);
  if (roll < 0.62) return generateHolderOperation(known);
  if (roll < 0.75) return generateTelling(known);
  if (roll < 0.83) return generateOperating(known);
  if (roll < 0.87) return { kind: "wakeDue", calls: [generateWakeDue(known)] };
  if (roll < 0.92) return { kind: "advance", ms: dice.pick([1, 100, 1_000, 5_000, 16_000, 16_000]) };
  if (roll < 0.94) return { kind: "setQueuePaused", queue: dice.pick(["a", "b"]), paused: dice.chance(0.4) };
  return generateReading(known);
}

/** What fires with the wake is rare, unless it is looked for. */
function isTimerDue({ fires, dueAt }: SnapshotParked, { now }: Knowledge): boolean {
  return fires !== null && dueAt !== null && dueAt <= now;
}

/** For everybody, or for a worker that would hold some of them. */
function generateWakeDue(known: Knowledge): Parameters<Store["wakeDue"]> {
  const { dice, snapshot } = known;
  const limit = dueLimit(known);
  if (snapshot.workers.length === 0 || dice.chance(0.2)) return [limit];
  const { workerId, lanes, leaseMs } = generateClaim(known, dice.pick(snapshot.workers).id);
  const sparesMs = dice.pick([undefined, 0, 1_000, 5_000]);
  return [
    limit,
    {
      workerId: dice.chance(0.2) ? null : workerId,
      lanes,
      ...(leaseMs !== undefined && { leaseMs }),
      ...(sparesMs !== undefined && { sparesMs }),
      ...(dice.chance(0.2) && { histories: dice.chance(0.5) }),
      // Rows that are due at the same instant have no order.
      ...(limit < 100 && { most: dice.pick([1, 2]) }),
    },
  ];
}

/** Rows that are due at the same instant have no order: either none of them is beyond the limit, or all are taken. */
function dueLimit({ dice, snapshot, now }: Knowledge): number {
  const due = snapshot.parked.flatMap(({ dueAt }) => (dueAt !== null && dueAt <= now ? [dueAt] : []));
  const isShared = new Set(due).size < due.length;
  return isShared ? 100 : dice.pick([1, 2, 100]);
}

function generateReading({ dice, snapshot }: Knowledge): Operation {
  const ids = [missingId, ...snapshot.runs.map(({ id }) => id)];
  switch (dice.between(0, 10)) {
    case 8:
      return { kind: "readPublished", calls: [[dice.pick(ids), dice.pick([null, "k", "l"])]] };
    case 9: {
      const place = { runId: dice.pick(ids), name: dice.pick(["a", "b"]), after: dice.between(0, 2) };
      const messages = snapshot.inbox.map(({ runId, id, idempotencyKey }) => ({
        runId,
        messageId: dice.chance(0.5) ? id : missingId,
        idempotencyKey,
      }));
      return dice.pick<Operation>([
        { kind: "readStream", calls: [[place, dice.pick([1, 10])]] },
        { kind: "findWritten", calls: [[[place, { ...place, name: "b" }]]] },
        { kind: "lastPositions", calls: [[place.runId, ["a", "b"]]] },
        { kind: "getAnswers", calls: [[dice.some(messages)]] },
      ]);
    }
    case 0:
      return { kind: "now", calls: [[]] };
    case 1:
      return { kind: "getEnds", calls: [[dice.some(ids)]] };
    case 2:
      return {
        kind: "loadHistory",
        calls: dice.chance(0.5)
          ? [[dice.pick(ids), dice.between(0, 2)]]
          : dice.some(ids).map((id) => [id, dice.between(0, 2), dice.between(0, 9)]),
      };
    case 3: {
      const filter = {
        ...(dice.chance(0.3) && { workflow: dice.pick(["w", "v"]) }),
        ...(dice.chance(0.3) && { queue: dice.pick(["a", "b"]) }),
        ...(dice.chance(0.3) && { before: dice.pick(ids) }),
        ...(dice.chance(0.5) && {
          status: dice.pick([...liveStatuses, ...endStatuses]),
        }),
        ...(dice.chance(0.2) && { after: dice.pick(ids) }),
        ...(dice.chance(0.2) && { tags: [dice.pick(["red", "blue"]), ...dice.some(["green"])] }),
        ...(dice.chance(0.1) && { errorCode: dice.pick(["WORKER_CRASHED", "E"]) }),
        limit: dice.pick([1, 3, 100]),
        look: dice.pick([1, 4, 100]),
      };
      return { kind: "listRuns", calls: [[filter]] };
    }
    case 4:
      return dice.pick<Operation>([
        { kind: "listAttempts", calls: [[dice.pick(ids)]] },
        { kind: "listChildren", calls: [[dice.pick(ids), dice.pick([null, ...ids]), dice.pick([1, 100])]] },
      ]);
    case 5:
      return { kind: "countRuns", calls: [[1_000]] };
    case 6:
      return { kind: "readBacklog", calls: [[1_000]] };
    case 10:
      return { kind: "findKey", calls: [[dice.pick(["k", "l", "m", "none"])]] };
    default:
      return { kind: "getRun", calls: dice.some(ids).map((id) => [id]) };
  }
}
