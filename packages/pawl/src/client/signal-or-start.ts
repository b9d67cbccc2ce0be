import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { placeOfMessage } from "../core/payload-codec.ts";
import { assertWorkflow, type InputOf, type SignalsOf, type WorkflowRef } from "../core/workflow-ref.ts";
import type { Topic } from "../store/message.ts";
import type { Connection } from "./connection.ts";
import { completeRun, describeRun } from "./new-run.ts";
import type { SignalName, SignalPayload } from "./run-handle.ts";
import { ended, notFound } from "./run-id.ts";
import { readSignalOrStart, type SignalOrStartOptions } from "./start-options.ts";
import { checkSignal } from "./telling.ts";

/** What `signalOrStart` takes for this workflow and signal: what may be undefined may be left out. */
export type SignalOrStartTerms<Ref extends WorkflowRef, Name extends SignalName<SignalsOf<Ref>>> = Omit<
  SignalOrStartOptions,
  "signal" | "payload" | "input"
> & { readonly signal: Name } & Optional<"payload", SignalPayload<SignalsOf<Ref>, Name>> &
  Optional<"input", InputOf<Ref>>;

type Optional<Key extends string, Value> = undefined extends Value
  ? { readonly [K in Key]?: Value }
  : { readonly [K in Key]: Value };

/** Two processes may start and prune the key's run in turn; each time its payload is sealed for another. */
const mostTries = 10;

export function createSignalOrStart(
  connection: Connection,
): (workflow: WorkflowRef, options: SignalOrStartOptions) => Promise<RunId> {
  const { ids, payloads, storeClock, emit } = connection;

  return async (workflow, options) => {
    assertWorkflow("signalOrStart", workflow);
    const { signal, payload, idempotencyKey = null, input, ...start } = readSignalOrStart(options);
    await checkSignal(workflow.signalSchemas, signal, payload);
    const place = connection.placeOf(start.tx);
    const described = await describeRun(workflow, input, start, payloads);
    await place.learn();
    // Both made once: however often the call is repeated, it creates one run and sends one signal.
    const run = completeRun(described, ids.next(), storeClock.now(), payloads);
    const id = ids.next();
    const topic: Topic = `signal:${signal}`;
    const written = payloads.write(payload, `The payload of ${topic}`);

    let runId = run.id;
    for (let tries = 0; tries < mostTries; tries++) {
      const data = payloads.seal(written, placeOfMessage(runId, topic));
      const boundTo = data === written ? null : runId;
      const answer = await place.signalOrStart({
        run,
        message: { id, topic, data, idempotencyKey },
        boundTo,
      });
      ({ id: runId } = answer);
      if (answer.kind === "elsewhere") continue;
      if (answer.kind === "conflict") throw otherWorkflow(start.key, runId);
      if (answer.told === "missing") throw notFound(runId);
      if (answer.told === "ended") throw ended(runId, `has the key "${start.key}" and has ended`);
      if (answer.kind === "created") {
        const { workflow: name, version, queue, key } = run;
        const at = new Date(storeClock.now());
        emit?.({ kind: "run.started", at, runId, workflow: name, version, queue, key });
      }
      return runId;
    }
    throw new PawlError(
      "INTERNAL",
      `The key "${start.key}" changes its run all the time. Please report this.`,
    );
  };
}

function otherWorkflow(key: string, runId: RunId): PawlError {
  const message = `The key "${key}" belongs to run ${runId}, which has another workflow.`;
  return new PawlError("KEY_CONFLICT", message, { key, runId });
}
