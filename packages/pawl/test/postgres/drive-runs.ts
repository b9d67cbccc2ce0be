import { createIds } from "../../src/core/ids.ts";
import type { Payload } from "../../src/core/json.ts";
import type { ClaimedRun, Lane, NewEvent } from "../../src/store/lease.ts";
import { plainRun } from "../../src/store/run-record.ts";
import type { Store } from "../../src/store/store.ts";
import { systemRandom } from "../../src/system/system-random.ts";

interface Drive {
  readonly runs: number;
  readonly inFlight: number;
  readonly steps: number;
}

const lane: Lane = { queue: "default", workflow: "checkout", version: 1, after: null, crashLimit: 3 };
const output: Payload = { json: '{"ok":true}', notes: null };

/** Starts runs and carries them to their end through the store alone, as a busy worker would: steps that take no time. */
export async function driveRuns(store: Store, { runs, inFlight, steps }: Drive): Promise<void> {
  const ids = createIds(Date.now, systemRandom);
  const workerId = ids.next();
  await store.registerWorker({
    id: workerId,
    leaseMs: 600_000,
    host: "here",
    pid: 1,
    queues: [lane.queue],
    concurrency: inFlight,
  });

  async function start(): Promise<void> {
    const input: Payload = { json: '{"orderId":9182}', notes: null };
    const { queue, workflow, version } = lane;
    await store.createRuns([{ ...plainRun, id: ids.next(), workflow, version, queue, input }]);
  }

  async function execute({ runId, epoch, server }: ClaimedRun): Promise<void> {
    const lease = { runId, epoch, workerId, server };
    for (let seq = 1; seq <= steps; seq++) {
      const step: NewEvent = {
        seq,
        kind: "step_completed",
        name: `step ${seq}`,
        attempt: 1,
        beganAt: Date.now(),
        data: output,
      };
      await store.record({ lease, events: [step], children: [] });
    }
    const end: NewEvent = {
      seq: steps + 1,
      kind: "completed",
      name: null,
      attempt: 1,
      beganAt: Date.now(),
      data: null,
    };
    const ended = { children: [], status: "completed", output, error: null } as const;
    await store.end({ lease, parentId: null, events: [end], ...ended });
  }

  const starting = Promise.all(Array.from({ length: runs }, start));
  const executing = new Set<Promise<void>>();
  for (let claimed = 0; claimed < runs;) {
    if (executing.size > inFlight * 0.75) {
      await Promise.race(executing);
      continue;
    }
    const limit = inFlight - executing.size;
    const claim = await store.claimRuns({ workerId, lanes: [lane], limit, suspects: false, begin: true });
    claimed += claim.runs.length;
    for (const run of claim.runs) {
      const execution = execute(run).finally(() => executing.delete(execution));
      executing.add(execution);
    }
    if (claim.runs.length === 0) await Promise.race([starting, ...executing]);
  }
  await Promise.all([starting, ...executing]);
}
