import { createIds, type RunId } from "../../packages/pawl/src/core/ids.ts";
import { server } from "../../packages/pawl/src/memory/fence.ts";
import type { Holder, Lease, Mark } from "../../packages/pawl/src/store/lease.ts";
import type { NewMessage } from "../../packages/pawl/src/store/message.ts";
import type { NewRun } from "../../packages/pawl/src/store/run-record.ts";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { Dice } from "./dice.ts";
import type { Operation } from "./operation.ts";

/** What the generator knows: the state, and what was done, so that it can do it again or too late. */
export interface Knowledge {
  readonly dice: Dice;
  nextId(): RunId;
  readonly now: number;
  readonly snapshot: StoreSnapshot;
  /** Leases, held or lost. */
  readonly leases: readonly Lease[];
  readonly marks: readonly Mark[];
  /** The pack in which a run may have been started. */
  packOf(runId: RunId): string | undefined;
  readonly starts: readonly NewRun[];
  readonly heldStarts: readonly [NewRun, Holder][];
  readonly messages: readonly NewMessage[];
  learn(operation: Operation, state: { readonly now: number; readonly snapshot: StoreSnapshot }): void;
}

export function createKnowledge(
  dice: Dice,
  start: { readonly now: number; readonly snapshot: StoreSnapshot },
): Knowledge {
  let { now, snapshot } = start;
  const ids = createIds(() => now, dice);
  const leases = new Map<string, Lease>();
  const marks = new Map<string, Mark>();
  const packs = new Map<RunId, string>();
  const starts: NewRun[] = [];
  const heldStarts: [NewRun, Holder][] = [];
  const messages: NewMessage[] = [];
  return {
    dice,
    nextId: () => ids.next(),
    get now() {
      return now;
    },
    get snapshot() {
      return snapshot;
    },
    get leases() {
      return [...leases.values()];
    },
    get marks() {
      return [...marks.values()];
    },
    packOf: (runId) => packs.get(runId),
    starts,
    heldStarts,
    messages,
    learn(operation, state) {
      ({ now, snapshot } = state);
      for (const { runId, epoch, workerId } of snapshot.lease)
        leases.set(`${runId}/${epoch}`, { runId, epoch, workerId, server });
      for (const { runId, readyAt } of snapshot.ready) {
        const priority = snapshot.runs.find(({ id }) => id === runId)?.priority ?? 0;
        marks.set(runId, { priority, readyAt, runId });
      }
      if (operation.kind === "createHeld") heldStarts.push(...operation.calls);
      if (operation.kind === "createRuns") {
        starts.push(...operation.calls.flatMap(([runs]) => runs));
        for (const started of startedTogether(operation.calls.map(([runs]) => runs)))
          for (const { id } of started) packs.set(id, started.at(-1)?.id ?? id);
      }
      if (operation.kind === "tell") messages.push(...operation.calls.map(([message]) => message));
      if (operation.kind === "insertMessage") messages.push(operation.message);
    },
  };
}

/** Calls for several go alone; those for one are merged. */
function startedTogether(calls: readonly (readonly NewRun[])[]): readonly (readonly NewRun[])[] {
  return [
    ...calls.filter((runs) => runs.length > 1),
    calls.flatMap((runs) => (runs.length === 1 ? runs : [])),
  ];
}
