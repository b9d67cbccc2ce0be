import { readChildEnd, type ChildEnd } from "../core/child-end.ts";
import { PawlError, type ErrorCode } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { PayloadPlace } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { revive } from "../core/recorded-error.ts";
import type { EndStatus } from "../core/run-status.ts";
import { readReceived } from "../core/update.ts";
import type { Request } from "./request.ts";

/**
 * Gives the code what the fact says, as if it had come this moment.
 * @throws {PawlError} where it cannot be read here: then nothing was given
 */
export function answer(request: Request, event: RunEvent, place: PayloadPlace, payloads: Payloads): void {
  const { kind, data } = event;
  if (kind === "timer_fired") request.resolve(request.family === "wait" ? null : undefined);
  else if (kind === "child_ended" && data !== null)
    answerWithChild(request, readChildEnd(data, childOf(request), payloads));
  else if ((kind === "step_failed" || kind === "stream_written") && data !== null)
    request.reject(payloads.decodeError(data, place));
  else if (kind === "update_received" && data !== null) request.resolve(readReceived(data, place, payloads));
  else if (kind === "published" || kind === "update_answered") request.resolve(undefined);
  else request.resolve(payloads.decode(data, place));
}

function childOf(request: Request): string | null {
  return request.family === "child" ? request.childId : null;
}

function answerWithChild(request: Request, end: ChildEnd): void {
  if (end.status === "completed") {
    request.resolve(end.output);
    return;
  }
  const cause = end.error === null ? undefined : { cause: revive(end.error) };
  const { code, happened } = childEnds[end.status];
  const name = request.family === "child" ? request.child.workflow : request.key;
  const reason = end.error === null ? "." : `: ${end.error.message}`;
  const message = `The child ${name} (run ${end.id}) ${happened}${reason}`;
  request.reject(new PawlError(code, message, { runId: end.id }, cause));
}

const childEnds: Readonly<
  Record<Exclude<EndStatus, "completed">, { readonly code: ErrorCode; readonly happened: string }>
> = {
  failed: { code: "RUN_FAILED", happened: "failed" },
  cancelled: { code: "RUN_CANCELLED", happened: "was cancelled" },
  timed_out: { code: "RUN_TIMED_OUT", happened: "timed out" },
  expired: { code: "RUN_EXPIRED", happened: "expired before it began" },
};
