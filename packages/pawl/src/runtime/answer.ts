import { decode } from "../core/codec.ts";
import { PawlError, type ErrorCode } from "../core/error.ts";
import type { RunEvent } from "../core/event.ts";
import { revive, reviveError } from "../core/recorded-error.ts";
import type { EndStatus } from "../core/run-status.ts";
import { readChildEnd, type ChildEnd } from "./fact.ts";
import type { Request } from "./request.ts";

/** Gives the code what the fact says, as if it had come this moment. */
export function answer(request: Request, event: RunEvent): void {
  if (event.kind === "timer_fired") request.resolve(request.family === "wait" ? null : undefined);
  else if (event.kind === "child_ended") answerWithChild(request, readChildEnd(event.data));
  else if (event.kind === "step_failed" && event.data !== null) request.reject(reviveError(event.data));
  else request.resolve(decode(event.data));
}

function answerWithChild(request: Request, end: ChildEnd): void {
  if (end.status === "completed") {
    // The message holds null for no output at all; the two are the same to a parent.
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
