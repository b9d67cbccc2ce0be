import { idOfChild, readChildEnd, type ChildEnd } from "../core/child-end.ts";
import { PawlError, type ErrorCode } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import type { PayloadPlace } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { revive } from "../core/recorded-error.ts";
import type { EndStatus } from "../core/run-status.ts";
import { readReceived } from "../core/update.ts";
import type { Request } from "./request.ts";

/** What a fact tells the code. */
export type Answer =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "failure"; readonly error: Error };

/** @throws {PawlError} where it cannot be read here */
export function readAnswer(
  request: Request,
  event: RunEvent,
  place: PayloadPlace,
  payloads: Payloads,
): Answer {
  const { kind, data } = event;
  if (kind === "timer_fired") return value(request.family === "wait" ? null : undefined);
  if (kind === "child_started") return value(idOfChild(data));
  if (kind === "child_ended" && data !== null)
    return readChild(request, readChildEnd(data, childOf(request), payloads));
  if ((kind === "step_failed" || kind === "stream_written") && data !== null)
    return { kind: "failure", error: payloads.decodeError(data, place) };
  if (kind === "update_received" && data !== null) return value(readReceived(data, place, payloads));
  if (kind === "published" || kind === "update_answered" || kind === "resumed") return value(undefined);
  return value(payloads.decode(data, place));
}

function value(value: unknown): Answer {
  return { kind: "value", value };
}

function childOf(request: Request): string | null {
  return request.family === "child" ? request.childId : null;
}

function readChild(request: Request, end: ChildEnd): Answer {
  if (end.status === "completed") return value(end.output);
  const cause = end.error === null ? undefined : { cause: revive(end.error) };
  const { code, happened } = childEnds[end.status];
  const name = request.family === "child" ? request.workflow : request.key;
  const reason = end.error === null ? "." : `: ${end.error.message}`;
  const message = `The child ${name} (run ${end.id}) ${happened}${reason}`;
  return { kind: "failure", error: new PawlError(code, message, { runId: end.id }, cause) };
}

const childEnds: Readonly<
  Record<Exclude<EndStatus, "completed">, { readonly code: ErrorCode; readonly happened: string }>
> = {
  failed: { code: "RUN_FAILED", happened: "failed" },
  cancelled: { code: "RUN_CANCELLED", happened: "was cancelled" },
  timed_out: { code: "RUN_TIMED_OUT", happened: "timed out" },
  expired: { code: "RUN_EXPIRED", happened: "expired before it began" },
};
