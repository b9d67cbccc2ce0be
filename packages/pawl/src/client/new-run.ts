import { parseDuration } from "../core/duration.ts";
import type { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { latestInstant } from "../core/instant.ts";
import type { Payload } from "../core/json.ts";
import { invalidOption } from "../core/options.ts";
import { placeOfInput } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { createRetryPolicy } from "../core/retry.ts";
import { parseWith } from "../core/schema.ts";
import type { WorkflowRef } from "../core/workflow-ref.ts";
import { plainRun, type NewRun } from "../store/run-record.ts";
import type { StartOptions } from "./start-options.ts";

/** What a run is started with, its input written but not sealed. */
export interface DescribedRun {
  readonly workflow: WorkflowRef;
  readonly options: StartOptions;
  /** Copied at once, as is the retry policy: the caller may change its own before the run is sent. */
  readonly tags: NewRun["tags"];
  readonly retry: NewRun["retry"];
  readonly input: Payload | null;
}

/**
 * At once where the workflow's schema can. The parsed input is stored, not the one given; that of a ref is parsed later.
 * @throws {PawlError} `INVALID_PAYLOAD`
 */
export function describeRun(
  workflow: WorkflowRef,
  input: unknown,
  options: StartOptions,
  payloads: Payloads,
): DescribedRun | Promise<DescribedRun> {
  const { inputSchema, name } = workflow;
  const tags = options.tags === undefined ? plainRun.tags : [...new Set(options.tags)];
  const retry = options.retry === undefined ? plainRun.retry : createRetryPolicy(options.retry);
  const describe = (parsed: unknown): DescribedRun => ({
    workflow,
    options,
    tags,
    retry,
    input: payloads.write(parsed, `The input of ${name}`),
  });
  if (inputSchema === null) return describe(input);
  const parsed = parseWith(inputSchema, input, `input of workflow ${name}`);
  return parsed instanceof Promise ? parsed.then(describe) : describe(parsed);
}

/**
 * The run as the store takes it: with its id, its times, which follow the store's clock, and its input sealed for it. Written
 * out: copies of so many properties are most of what a start costs.
 * @throws {PawlError} `INVALID_OPTION` where its time would be up before it may begin; `CODEC_FAILED`
 */
export function completeRun(
  { workflow, options, tags, retry, input }: DescribedRun,
  id: RunId,
  now: number,
  payloads: Payloads,
): NewRun {
  const { key = null } = options;
  const { startAt, expiresAt, deadlineAt } = timesOf(options, now, workflow);
  return {
    id,
    workflow: workflow.name,
    version: workflow.version,
    queue: options.queue ?? workflow.queue,
    priority: options.priority ?? plainRun.priority,
    input: payloads.seal(input, placeOfInput(id), key !== null),
    isRaw: workflow.isRef === true,
    key,
    mustBeNew: options.onConflict === "reject",
    tags,
    retry,
    startAt,
    expiresAt,
    deadlineAt,
    parent: plainRun.parent,
    isDetached: plainRun.isDetached,
    forkedFrom: plainRun.forkedFrom,
  };
}

function timesOf(
  options: StartOptions,
  now: number,
  workflow: WorkflowRef,
): Pick<NewRun, "startAt" | "expiresAt" | "deadlineAt"> {
  const startAt = instantOf(options.at) ?? later(now, options.delay);
  const mayBeginAt = Math.max(now, startAt ?? now);
  const expiresAt = instantOf(options.expiresAt) ?? later(mayBeginAt, options.expiresIn);
  const deadlineAt =
    instantOf(options.deadline) ?? later(mayBeginAt, options.timeout ?? workflow.timeoutMs ?? undefined);
  if (mayBeginAt > now) {
    if (isOver(options.expiresAt, mayBeginAt)) throw tooEarly("expiresAt", "would expire");
    if (isOver(options.deadline, mayBeginAt)) throw tooEarly("deadline", "would time out");
  }
  return { startAt, expiresAt, deadlineAt };
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
