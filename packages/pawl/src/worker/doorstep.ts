import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import type { RunId } from "../core/ids.ts";
import type { ClaimedRun, Lane } from "../store/lease.ts";
import type { Taker } from "../store/taker.ts";
import type { ClaimLoop } from "./claim-loop.ts";
import type { Registration } from "./registration.ts";
import type { Slots } from "./slots.ts";

export interface DoorstepParts {
  readonly clock: Clock;
  readonly probe: Probe;
  readonly registration: Registration;
  readonly slots: Slots;
  readonly lanes: readonly Lane[];
  readonly leaseMs: number;
  readonly mayTake: ClaimLoop["mayTake"];
  /** Takes a run into a slot and executes it. */
  readonly execute: (run: ClaimedRun, workerId: string) => void;
  /** A slot that was kept for this run is free again. */
  readonly freed: (runId: RunId) => void;
  /** The worker may hold something soon. */
  readonly awake: () => void;
}

/**
 * Takes runs that are started in this very process, without their way through the queue: they are held from their start. What others
 * have queued has its turn as soon as it is announced, or looked for; what comes when no slot is free is for others.
 */
export function createDoorstep(parts: DoorstepParts): Taker {
  const { clock, registration, slots, leaseMs } = parts;
  const crashLimits = new Map(parts.lanes.map((lane) => [laneOf(lane), lane.crashLimit]));

  return {
    offer(run) {
      const crashLimit = crashLimits.get(laneOf(run)) ?? 0;
      if (crashLimit === 0 || run.startAt !== null || slots.free() <= 0 || slots.waiting() > 0) return null;
      const { workerId } = registration;
      if (!parts.mayTake() || !registration.isAlive(workerId)) return null;
      slots.expect(run.id);
      const leave = (): void => {
        slots.unexpect(run.id);
        parts.freed(run.id);
      };
      // From here on it may hold something, and must be heard as often as if it did.
      parts.awake();
      registration.claimed(workerId, clock.now());
      return {
        holder: { workerId, leaseMs, crashLimit },
        settle(held) {
          // What an id held that is no longer this worker's has been given back, or will be.
          if (held === null || workerId !== registration.workerId) return leave();
          slots.unexpect(run.id);
          parts.probe("claim.answered");
          parts.execute(held, workerId);
        },
        giveUp: leave,
      };
    },
    isUnderWay: (runId) => slots.get(runId) !== undefined,
  };
}

function laneOf({ queue, workflow, version }: Pick<Lane, "queue" | "workflow" | "version">): string {
  return `${version}/${workflow.length}/${workflow}/${queue}`;
}
