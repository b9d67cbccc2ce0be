import { createClient } from "../../packages/pawl/src/client/client.ts";
import { PawlError, type ErrorCode } from "../../packages/pawl/src/core/error.ts";
import { createIds } from "../../packages/pawl/src/core/ids.ts";
import type { EndStatus } from "../../packages/pawl/src/core/run-status.ts";
import { createStoreClock } from "../../packages/pawl/src/store/store-clock.ts";
import type { ProgramWorkflow } from "../gen/program-workflow.ts";
import type { Attempts } from "../gen/program.ts";
import type { ClientPort } from "./callers.ts";
import type { ProcessSeams } from "./worker-process.ts";

const endOf: Readonly<Partial<Record<ErrorCode, EndStatus>>> = {
  RUN_FAILED: "failed",
  RUN_CANCELLED: "cancelled",
  RUN_TIMED_OUT: "timed_out",
  RUN_EXPIRED: "expired",
};

/** A client in a simulated process. */
export function createSimClient(
  { process, store, rng, log }: ProcessSeams,
  workflows: ReadonlyMap<Attempts, ProgramWorkflow>,
): ClientPort {
  const { clock, timers } = process;
  const storeClock = createStoreClock(clock, store);
  const ids = createIds(() => storeClock.now(), rng);
  const client = createClient({ store, clock, storeClock, timers, random: rng, ids, log });
  return {
    async start(program, key) {
      const workflow = workflows.get(program.attempts);
      if (workflow === undefined) throw new Error(`No workflow makes ${program.attempts} attempts.`);
      return (await client.start(workflow, program, { key })).id;
    },
    signal: (run, name, value, idempotencyKey) => client.signal(run, name, value, { idempotencyKey }),
    cancel: (run) => client.cancel(run),
    pause: (run) => client.pause(run),
    resume: (run) => client.resume(run),
    async result(run) {
      try {
        return { status: "completed", output: (await client.handle(run).result()) ?? null };
      } catch (error) {
        const status = PawlError.is(error) ? endOf[error.code] : undefined;
        if (status === undefined) throw error;
        return { status, output: null };
      }
    },
  };
}
