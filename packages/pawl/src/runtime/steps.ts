import type { Clock } from "../core/clock.ts";
import type { Probe } from "../core/crash-point.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Fact, Holding } from "./holding.ts";
import type { StepRequest } from "./request.ts";
import { Settled } from "./settled.ts";

/** A step in progress: since when by the store's clock, as far as it is known, and by this process's. */
export interface RunningStep {
  readonly key: string;
  readonly beganAt: number;
  readonly since: number;
}

/** The step functions that are being executed. */
export interface Steps {
  readonly size: number;
  /** Keys of the running steps, in the order started. */
  running(): readonly string[];
  inProgress(): readonly RunningStep[];
  /** Keys of those that ran at this instant of the process's clock, or have since; of those that ended only the last. */
  ranSince(at: number): readonly string[];
  start(request: StepRequest): void;
  /** Tells all of them, and all to come, that their result is no longer wanted. */
  abort(reason: Error): void;
}

export interface StepsParts {
  readonly claimed: ClaimedRun;
  readonly holding: Holding;
  readonly probe: Probe;
  readonly log: Log;
  readonly payloads: Payloads;
  readonly clock: Clock;
  /** Called when a step has ended and its fact waits to be recorded, or when it does not begin because the run is lost. */
  readonly ended: () => void;
}

export function createSteps(parts: StepsParts): Steps {
  const { claimed, holding, probe, log, payloads, clock, ended } = parts;
  const running = new Map<string, RunningStep>();
  let lastEnded: { readonly key: string; readonly at: number } | null = null;
  const controller = new AbortController();

  /** What the step returns is written down before the code sees it, so a result that cannot be is a failure. */
  const execute = async ({ call, key }: StepRequest): Promise<Pick<Fact, "kind" | "data"> | null> => {
    const idempotencyKey = `${claimed.runId}/${key}`;
    const place = placeOfEvent(claimed.runId, { kind: "step_completed", name: key });
    try {
      const result = await call({ signal: controller.signal, idempotencyKey, attempt: claimed.attempt, log });
      if (result instanceof Settled) return result.fact;
      return { kind: "step_completed", data: payloads.encode(result, place, `The result of step "${key}"`) };
    } catch (error) {
      return { kind: "step_failed", data: payloads.encodeError(error, place) };
    }
  };

  const run = async (request: StepRequest, { key, beganAt, since }: RunningStep): Promise<void> => {
    probe("step.before");
    if (!holding.isHeld) return ended();
    const result = await execute(request);
    probe("step.after");
    running.delete(key);
    lastEnded = { key, at: clock.now() };
    if (request.state === "issued") request.state = "answering";
    const tookMs = lastEnded.at - since;
    if (result !== null)
      holding.add({ ...result, name: key, attempt: claimed.attempt, beganAt }, undefined, tookMs);
    ended();
  };

  return {
    get size() {
      return running.size;
    },
    running: () => [...running.keys()],
    inProgress: () => [...running.values()],
    ranSince: (at) => [
      ...running.keys(),
      ...(lastEnded !== null && lastEnded.at >= at ? [lastEnded.key] : []),
    ],
    start(request) {
      request.state = "issued";
      const step = { key: request.key, beganAt: holding.time.estimate(), since: clock.now() };
      running.set(step.key, step);
      void run(request, step);
    },
    abort: (reason) => controller.abort(reason),
  };
}
