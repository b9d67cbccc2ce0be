import { parseDuration } from "../core/duration.ts";
import type { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { latestInstant } from "../core/instant.ts";
import { invalidOption } from "../core/options.ts";
import { placeOfInput } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { createRetryPolicy } from "../core/retry.ts";
import { parseWith } from "../core/schema.ts";
import type { WorkflowRef } from "../core/workflow-ref.ts";
import { plainRun, type NewRun } from "../store/run-record.ts";
import type { StartOptions } from "./start-options.ts";

/**
 * A run as the store takes it, all but its id and its times; its input is yet to be sealed. The parsed input is stored,
 * not the one given; that of a ref is parsed later.
 * @throws {PawlError} `INVALID_PAYLOAD`
 */
export async function describeRun(
  workflow: WorkflowRef,
  input: unknown,
  options: StartOptions,
  payloads: Payloads,
): Promise<Omit<NewRun, "id" | "startAt" | "expiresAt" | "deadlineAt">> {
  const queue = options.queue ?? workflow.queue;
  const { inputSchema } = workflow;
  const parsed =
    inputSchema === null ? input : await parseWith(inputSchema, input, `input of workflow ${workflow.name}`);
  return {
    ...plainRun,
    isRaw: workflow.isRef === true,
    workflow: workflow.name,
    version: workflow.version,
    queue,
    priority: options.priority ?? 0,
    input: payloads.write(parsed, `The input of ${workflow.name}`),
    key: options.key ?? null,
    mustBeNew: options.onConflict === "reject",
    tags: [...new Set(options.tags)],
    retry: options.retry === undefined ? null : createRetryPolicy(options.retry),
  };
}

/** Seals the input for the run that it is of. @throws {PawlError} `CODEC_FAILED` */
export function sealRun(run: NewRun, payloads: Payloads): NewRun {
  return { ...run, input: payloads.seal(run.input, placeOfInput(run.id), run.key !== null) };
}

/**
 * Adds the id and the times, which follow the store's clock.
 * @throws {PawlError} `INVALID_OPTION` where its time would be up before it may begin
 */
export function timeRun(
  described: Awaited<ReturnType<typeof describeRun>>,
  id: RunId,
  now: number,
  workflow: WorkflowRef,
  options: StartOptions,
): NewRun {
  const startAt = instantOf(options.at) ?? later(now, options.delay);
  const mayBeginAt = Math.max(now, startAt ?? now);
  const expiresAt = instantOf(options.expiresAt) ?? later(mayBeginAt, options.expiresIn);
  const deadlineAt =
    instantOf(options.deadline) ?? later(mayBeginAt, options.timeout ?? workflow.timeoutMs ?? undefined);
  if (mayBeginAt > now) {
    if (isOver(options.expiresAt, mayBeginAt)) throw tooEarly("expiresAt", "would expire");
    if (isOver(options.deadline, mayBeginAt)) throw tooEarly("deadline", "would time out");
  }
  return { ...described, id, startAt, expiresAt, deadlineAt };
}

function isOver(date: Date | undefined, at: number): boolean {
  return date !== undefined && date.getTime() <= at;
}

function tooEarly(option: string, consequence: string): PawlError {
  return invalidOption(
    "start",
    option,
    `must be later than its start: the run ${consequence} before it may begin`,
  );
}

/** A store need not know instants before 1970. */
function instantOf(date: Date | undefined): number | null {
  return date === undefined ? null : Math.max(0, date.getTime());
}

function later(now: number, duration: string | number | undefined): number | null {
  return duration === undefined ? null : Math.min(latestInstant, Math.ceil(now + parseDuration(duration)));
}
