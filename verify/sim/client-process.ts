import { createClient } from "../../packages/pawl/src/client/client.ts";
import type { StartOptions } from "../../packages/pawl/src/client/start-options.ts";
import { PawlError, type ErrorCode } from "../../packages/pawl/src/core/error.ts";
import { createIds } from "../../packages/pawl/src/core/ids.ts";
import type { EndStatus } from "../../packages/pawl/src/core/run-status.ts";
import { createStoreClock } from "../../packages/pawl/src/store/store-clock.ts";
import type { ProgramSettings, ProgramWorkflow } from "../gen/program-workflow.ts";
import type { Attempts } from "../gen/program.ts";
import type { StartTerms } from "../gen/scenario.ts";
import { createAskingPort } from "./asking-port.ts";
import type { ClientPort } from "./client-port.ts";
import type { ProcessSeams } from "./worker-process.ts";

const endOf: Readonly<Partial<Record<ErrorCode, EndStatus>>> = {
  RUN_FAILED: "failed",
  RUN_CANCELLED: "cancelled",
  RUN_TIMED_OUT: "timed_out",
  RUN_EXPIRED: "expired",
};

function optionsOf(
  { delayMs, expiresInMs, timeoutMs, attempts, priority, mustBeNew }: StartTerms,
  retryMs: number,
): StartOptions {
  return {
    priority,
    ...(delayMs === null ? {} : { delay: delayMs }),
    ...(expiresInMs === null ? {} : { expiresIn: expiresInMs }),
    ...(timeoutMs === null ? {} : { timeout: timeoutMs }),
    ...(attempts === null ? {} : { retry: { attempts, backoff: "fixed", initial: retryMs } }),
    ...(mustBeNew ? { onConflict: "reject" } : {}),
  };
}

/** A client in a simulated process. */
export function createSimClient(
  { process, store, rng, log, takers, audiences }: ProcessSeams,
  workflows: ReadonlyMap<Attempts, ProgramWorkflow>,
  { retryMs }: ProgramSettings,
): ClientPort {
  const { clock, timers } = process;
  const storeClock = createStoreClock(clock, store);
  const ids = createIds(() => storeClock.now(), rng);
  const client = createClient({ store, clock, storeClock, timers, random: rng, ids, log, takers, audiences });
  const workflowOf = (attempts: Attempts): ProgramWorkflow => {
    const workflow = workflows.get(attempts);
    if (workflow === undefined) throw new Error(`No workflow makes ${attempts} attempts.`);
    return workflow;
  };
  return {
    async start(program, key, terms) {
      return (
        await client.start(workflowOf(program.attempts), program, { key, ...optionsOf(terms, retryMs) })
      ).id;
    },
    async startMany({ attempts, items }) {
      const given = items.map(({ program, key }) => ({ input: program, key }));
      return (await client.startMany(workflowOf(attempts), given)).map(({ id }) => id);
    },
    async signalOrStart(program, key, terms, signal, payload) {
      const told = { signal, payload, idempotencyKey: payload };
      const options = { ...told, key, input: program, ...optionsOf(terms, retryMs) };
      return (await client.signalOrStart(workflowOf(program.attempts), options)).id;
    },
    async fork(run, from, key) {
      try {
        return (await client.fork(run, { from, key })).id;
      } catch (error) {
        if (PawlError.is(error, "INVALID_OPTION")) return null;
        throw error;
      }
    },
    async cancelAll() {
      await client.cancelAll({});
    },
    async pauseAll() {
      await client.pauseAll({});
    },
    async resumeAll() {
      await client.resumeAll({});
    },
    signal: (run, name, value, idempotencyKey) => client.signal(run, name, value, { idempotencyKey }),
    cancel: (run) => client.cancel(run),
    terminate: (run) => client.terminate(run, "terminated"),
    redrive: (run, isFresh) => (isFresh ? client.retry(run, { from: "start" }) : client.redrive(run)),
    async redriveAll(status) {
      await client.redriveAll({ status, children: true });
    },
    reschedule: (run, { priority, startInMs }) =>
      client.reschedule(run, {
        ...(priority === null ? {} : { priority }),
        ...(startInMs === null ? {} : { delay: startInMs }),
      }),
    pause: (run) => client.pause(run),
    resume: (run) => client.resume(run),
    ...createAskingPort(client),
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
