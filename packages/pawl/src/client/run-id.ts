import { PawlError } from "../core/error.ts";
import { isRunId, type RunId } from "../core/ids.ts";

/** Whatever else it may be, a text can be the id of a run that is not there. @throws {PawlError} `INVALID_OPTION` */
export function assertText(runId: unknown): asserts runId is string {
  if (typeof runId !== "string")
    throw new PawlError("INVALID_OPTION", "The id of a run must be a string, such as a handle's id.");
}

/** @throws {PawlError} `INVALID_OPTION`, `RUN_NOT_FOUND` */
export function assertRunId(runId: unknown): asserts runId is RunId {
  assertText(runId);
  if (!isRunId(runId)) throw notFound(runId);
}

export function notFound(text: string): PawlError {
  const runId = text.slice(0, 80);
  return new PawlError("RUN_NOT_FOUND", `There is no run ${runId}.`, { runId });
}

export function ended(runId: RunId, consequence: string): PawlError {
  return new PawlError("RUN_ENDED", `Run ${runId} ${consequence}.`, { runId });
}
