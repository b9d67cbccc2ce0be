import { parseDuration, type Duration } from "../core/duration.ts";
import { assertName } from "../core/name.ts";
import { checkDuration, checkInteger, checkOptions, checkText, invalidOption } from "../core/options.ts";
import type { InputOf, OutputOf, SignalsOf, WorkflowRef } from "../core/workflow-ref.ts";

export interface RefOptions {
  /** Where runs go unless `start` says otherwise. Default `"default"`: the workflow's own setting is not known here. */
  readonly queue?: string;
  /** Runs that take longer end as `timed_out`. Default: none. */
  readonly timeout?: Duration;
}

/**
 * Names a workflow whose code lives elsewhere, so that another service can start it with the types alone. Inputs are
 * not parsed here, since the schema is code: the types are all that guards them.
 * @example
 * import type { checkout } from "./checkout.ts";
 * const run = await pawl.start(ref<typeof checkout>("checkout", 1), { orderId: 9182 });
 */
export function ref<Workflow extends WorkflowRef>(
  name: string,
  version: number,
  options: RefOptions = {},
): WorkflowRef<InputOf<Workflow>, OutputOf<Workflow>, SignalsOf<Workflow>> {
  assertName("workflow", name);
  checkOptions("ref", options, { queue: checkText, timeout: checkDuration });
  const fault = checkInteger(1, 2 ** 31 - 1)(version);
  if (fault !== null) throw invalidOption("ref", "version", fault);
  return {
    name,
    version,
    queue: options.queue ?? "default",
    timeoutMs: options.timeout === undefined ? null : parseDuration(options.timeout),
    inputSchema: null,
    signalSchemas: null,
  };
}
