import { PawlError } from "../core/error.ts";
import type { Payload } from "../core/json.ts";
import { checkInteger, checkOptions } from "../core/options.ts";
import type { Payloads } from "../core/payloads.ts";
import { parseWith } from "../core/schema.ts";
import { isWorkflow, type WorkflowRef } from "../core/workflow-ref.ts";

/** What `ctx.continueAs` takes after the input. */
export interface ContinueOptions {
  /** The version of the workflow to go on with. Its first worker parses the input. Default: the same. */
  readonly version?: number;
  /** Never there: tells these options from a workflow. */
  readonly name?: never;
}

/** What the run that goes on from this one is made of; its input is sealed once it has an id. */
export interface ContinuationTerms {
  readonly version: number;
  readonly input: Payload | null;
  readonly isRaw: boolean;
}

/**
 * Reads what `continueAs` was given.
 * @throws {PawlError} `INVALID_OPTION`, `INVALID_PAYLOAD`, what the schema says
 */
export async function readContinuation(
  workflow: WorkflowRef,
  payloads: Payloads,
  input: unknown,
  to: ContinueOptions | WorkflowRef,
): Promise<ContinuationTerms> {
  const target = readTarget(workflow, to);
  const what = `The input of ${workflow.name}`;
  const { version, inputSchema } = target;
  const parsed =
    inputSchema === null ? input : await parseWith(inputSchema, input, `input of ${workflow.name}`);
  return { version, input: payloads.write(parsed, what), isRaw: target.isRaw };
}

interface Target extends Pick<WorkflowRef, "version" | "inputSchema"> {
  readonly isRaw: boolean;
}

function readTarget(workflow: WorkflowRef, to: ContinueOptions | WorkflowRef): Target {
  if (isWorkflow(to)) {
    if (to.name === workflow.name)
      return { version: to.version, inputSchema: to.inputSchema, isRaw: to.isRef === true };
    throw new PawlError(
      "INVALID_OPTION",
      `A run of ${workflow.name} goes on as a run of ${workflow.name}, not of ${to.name}: use ctx.call for that.`,
      { workflow: to.name },
    );
  }
  const checks = { version: checkInteger(1, 2 ** 31 - 1) };
  const { version = workflow.version } = checkOptions<ContinueOptions>("continueAs", to, checks);
  if (version === workflow.version) return { version, inputSchema: workflow.inputSchema, isRaw: false };
  return { version, inputSchema: null, isRaw: true };
}
