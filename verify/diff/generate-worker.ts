import type { ClaimRequest } from "../../packages/pawl/src/store/lease.ts";
import { leaseMs } from "../../packages/pawl/test/conformance/world.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

const mostWorkers = 3;
const lowestId = "00000000-0000-0000-0000-000000000000";

/** Register, claim, heartbeat, retire and sweep. */
export function generateWorkerOperation(known: Knowledge): Operation {
  const { dice, now, snapshot, leases } = known;
  const living = snapshot.workers.filter(({ endedAt }) => endedAt === null);
  if (living.length === 0 || (living.length < mostWorkers && dice.chance(0.06))) {
    const id =
      snapshot.workers.length > 0 && dice.chance(0.1) ? dice.pick(snapshot.workers).id : known.nextId();
    const worker = {
      id,
      leaseMs: dice.pick([leaseMs, 5_000]),
      host: "here",
      pid: 7,
      queues: ["a"],
      concurrency: 10,
    };
    return { kind: "registerWorker", calls: [[worker]] };
  }
  // Before it is heard again: its runs are recovered, and may fail.
  const isOverdue = living.some(({ heardAt, leaseMs: ms }) => heardAt + ms <= now);
  if (isOverdue && dice.chance(0.5))
    return { kind: "sweep", calls: [[{ limit: sweepLimit(known), after: null }]] };
  const roll = dice.next();
  const workerId = roll < 0.03 ? known.nextId() : dice.pick(dice.chance(0.1) ? snapshot.workers : living).id;
  if (roll < 0.55) return { kind: "claimRuns", calls: [[generateClaim(known, workerId)]] };
  if (roll < 0.75) {
    const ours = leases.filter((lease) => lease.workerId === workerId);
    const held = dice.chance(0.6) ? ours : dice.some([...ours, ...dice.some(leases, 1)]);
    const claimsKnownTo = dice.pick([null, now, now, now - 1, now - 1_000]);
    const lease = dice.chance(0.3) ? { leaseMs: dice.pick([5_000, leaseMs, 12 * leaseMs]) } : {};
    return { kind: "heartbeat", calls: [[{ workerId, held, claimsKnownTo, ...lease }]] };
  }
  if (roll < 0.79) return { kind: "retireWorker", calls: [[workerId]] };
  return {
    kind: "sweep",
    calls: [[{ limit: sweepLimit(known), after: dice.chance(0.8) ? null : known.nextId() }]],
  };
}

export function generateClaim({ dice, marks }: Knowledge, workerId: string): ClaimRequest {
  // Of runs that were started together Postgres may bring those before a mark that stands among them, as no worker's does.
  const after = dice.chance(0.1) && marks.length > 0 ? { ...dice.pick(marks), runId: lowestId } : null;
  const lanes = ["a", "b"].flatMap((queue) =>
    ["w", "v"].flatMap((workflow) =>
      [1, 2].map((version) => ({ queue, workflow, version, after, crashLimit: dice.pick([0, 1, 1, 1, 3]) })),
    ),
  );
  return {
    workerId,
    lanes: dice.chance(0.5) ? lanes : dice.some(lanes),
    limit: dice.pick([1, 2, 5]),
    suspects: dice.chance(0.25),
    begin: dice.chance(0.8),
    ...(dice.chance(0.5) && { leaseMs: dice.pick([5_000, leaseMs]) }),
  };
}

/** Runs that expire at the same instant have no order: either none of them is beyond the limit, or all are taken. */
function sweepLimit({ dice, snapshot, now }: Knowledge): number {
  const expired = snapshot.ready.flatMap(({ expiresAt }) =>
    expiresAt !== null && expiresAt <= now ? [expiresAt] : [],
  );
  const isShared = new Set(expired).size < expired.length;
  return isShared ? 100 : dice.pick([1, 2, 100]);
}
