import type { Clock } from "../core/clock.ts";
import type { LoadMeter } from "../core/load.ts";
import type { WorkerSample } from "../store/worker-record.ts";
import type { Slots } from "./slots.ts";

/** Decides when a heartbeat carries how the worker fares. */
export interface Sampler {
  /** A sample if one is due, and then not again for a while. */
  take(): WorkerSample | null;
  stop(): void;
}

export function createSampler(
  clock: Clock,
  slots: Slots,
  everyMs: number,
  startMeter: (() => LoadMeter) | undefined,
): Sampler {
  let meter: LoadMeter | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;
  return {
    take() {
      const now = clock.now();
      if (startMeter === undefined || now < dueAt) return null;
      dueAt = now + everyMs;
      meter ??= startMeter();
      return { held: slots.size(), ...meter.read() };
    },
    stop() {
      meter?.stop();
      meter = undefined;
      dueAt = Number.POSITIVE_INFINITY;
    },
  };
}
