import type { Probe } from "../core/crash-point.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Fact, Holding } from "./holding.ts";
import type { StepRequest } from "./request.ts";

/** The step functions that are being executed. */
export interface Steps {
  readonly size: number;
  /** Keys of the running steps, in the order started. */
  running(): readonly string[];
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
  /** Called when a step has ended and its fact waits to be recorded, or when it does not begin because the run is lost. */
  readonly ended: () => void;
}

export function createSteps({ claimed, holding, probe, log, payloads, ended }: StepsParts): Steps {
  const running = new Map<string, Promise<void>>();
  const controller = new AbortController();

  /** What the step returns is written down before the code sees it, so a result that cannot be is a failure. */
  const execute = async ({ call, key }: StepRequest): Promise<Pick<Fact, "kind" | "data">> => {
    const idempotencyKey = `${claimed.runId}/${key}`;
    const place = placeOfEvent(claimed.runId, { kind: "step_completed", name: key });
    try {
      const result = await call({ signal: controller.signal, idempotencyKey, attempt: claimed.attempt, log });
      return { kind: "step_completed", data: payloads.encode(result, place, `The result of step "${key}"`) };
    } catch (error) {
      return { kind: "step_failed", data: payloads.encodeError(error, place) };
    }
  };

  const run = async (request: StepRequest): Promise<void> => {
    const { key } = request;
    const beganAt = holding.time.estimate();
    probe("step.before");
    if (!holding.isHeld) return ended();
    const result = await execute(request);
    probe("step.after");
    running.delete(key);
    if (request.state === "issued") request.state = "answering";
    holding.add({ ...result, name: key, attempt: claimed.attempt, beganAt });
    ended();
  };

  return {
    get size() {
      return running.size;
    },
    running: () => [...running.keys()],
    start(request) {
      request.state = "issued";
      running.set(request.key, run(request));
    },
    abort: (reason) => controller.abort(reason),
  };
}
