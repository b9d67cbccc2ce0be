import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { placeOfError, placeOfOutput } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { notUndoneOf } from "../core/recorded-error.ts";
import type { RunEnd } from "../store/run-record.ts";

/** The output of a run that completed; throws what became of any other. */
export function resultOf(runId: RunId, end: RunEnd, payloads: Payloads): unknown {
  const error = end.error === null ? null : payloads.decodeError(end.error, placeOfError(runId));
  const options = error === null ? undefined : { cause: error };
  const notUndone = notUndoneOf(error);
  const details = { runId, ...(notUndone !== null && { notUndone }) };
  switch (end.status) {
    case "completed":
      return payloads.decode(end.output, placeOfOutput(runId));
    case "failed":
      throw new PawlError(
        "RUN_FAILED",
        `Run ${runId} failed: ${error?.message ?? "no reason is recorded"}`,
        details,
        options,
      );
    case "cancelled":
      throw cancelled(runId, error?.message ?? null, details);
    case "timed_out":
      throw new PawlError("RUN_TIMED_OUT", `Run ${runId} took longer than its timeout.`, details, options);
    case "expired":
      throw new PawlError("RUN_EXPIRED", `Run ${runId} was not begun in time.`, { runId }, options);
    default:
      return end.status satisfies never;
  }
}

/** @param reason what `cancel` was given; "parent" where the parent run was cancelled */
function cancelled(runId: RunId, reason: string | null, details: PawlError["details"]): PawlError {
  const because = reason === null ? "." : `: ${reason}`;
  return new PawlError("RUN_CANCELLED", `Run ${runId} was cancelled${because}`, { ...details, reason });
}
