import { parseDuration, type Duration } from "../core/duration.ts";
import { assertName } from "../core/name.ts";
import { checkDuration, checkInteger, checkName, checkOptions, invalidOption } from "../core/options.ts";
import type {
  InputOf,
  OutputOf,
  PublishedOf,
  SignalsOf,
  UpdatesOf,
  WorkflowRef,
} from "../core/workflow-ref.ts";

/** Settings of a workflow that only its code knows. */
export interface RefOptions {
  /** Where runs go unless `start` says otherwise. Default `"default"`: the workflow's own setting is not known here. */
  readonly queue?: string;
  /** Runs that take longer end as `timed_out`. Default: none. */
  readonly timeout?: Duration;
}

/**
 * Names a workflow whose code lives elsewhere, so that another service can start it with the types alone. The
 * schema is code too, so the first worker that takes the run parses the input: one that does not fit fails the run there.
 * @throws {PawlError} `INVALID_OPTION`, `INVALID_NAME`
 * @example
 * import type { checkout } from "./checkout.ts";
 * const run = await pawl.start(ref<typeof checkout>("checkout", 1), { orderId: 9182 });
 */
export function ref<Workflow extends WorkflowRef>(
  name: string,
  version: number,
  options: RefOptions = {},
): WorkflowRef<
  InputOf<Workflow>,
  OutputOf<Workflow>,
  SignalsOf<Workflow>,
  PublishedOf<Workflow>,
  UpdatesOf<Workflow>
> {
  assertName("workflow", name);
  assertVersion(version);
  const { queue, timeout } = checkOptions("ref", options, { queue: checkName, timeout: checkDuration });
  return {
    name,
    version,
    queue: queue ?? "default",
    timeoutMs: timeout === undefined ? null : parseDuration(timeout),
    inputSchema: null,
    signalSchemas: null,
    publishedSchemas: null,
    updateSchemas: null,
    isRef: true,
  };
}

function assertVersion(version: unknown): void {
  const fault = checkInteger(1, 2 ** 31 - 1)(version);
  if (typeof fault === "string") throw invalidOption("ref", "version", fault);
}
