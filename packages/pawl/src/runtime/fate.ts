import type { RunEvent } from "../core/event.ts";
import type { Payload } from "../core/json.ts";
import { placeOfError } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { Stop } from "./orders.ts";

/** How a run that did not complete will end. */
export interface Fate {
  readonly status: "failed" | Stop;
  /** As it is stored with the run. */
  readonly error: Payload | null;
}

interface RecordedFate {
  readonly status: Fate["status"];
  readonly error: unknown;
  readonly notes: unknown;
}

/** What an `undo_began` says. */
export function writeFate({ status, error }: Fate): Payload {
  const recorded: RecordedFate = {
    status,
    error: parse(error?.json),
    notes: parse(error?.notes),
  };
  return { json: JSON.stringify(recorded), notes: null };
}

export function readFate({ data }: RunEvent): Fate {
  const { status, error, notes } = JSON.parse(data?.json ?? "{}") as RecordedFate;
  if (error === null) return { status, error: null };
  return {
    status,
    error: { json: JSON.stringify(error), notes: notes === null ? null : JSON.stringify(notes) },
  };
}

function parse(json: string | null | undefined): unknown {
  return json === null || json === undefined ? null : JSON.parse(json);
}

/** The run's error, which tells what could not be undone. */
export function errorOf(
  { status, error }: Fate,
  notUndone: readonly string[],
  runId: string,
  payloads: Payloads,
): Payload | null {
  if (notUndone.length === 0) return error;
  if (status !== "failed" || error === null) {
    const message = `These steps could not be undone: ${notUndone.join(", ")}.`;
    const code = status === "timed_out" ? "RUN_TIMED_OUT" : "RUN_CANCELLED";
    // The reason of a cancel is not sealed.
    const members =
      error === null ? { name: "PawlError", code, message } : (JSON.parse(error.json) as object);
    return { json: JSON.stringify({ ...members, notUndone }), notes: null };
  }
  const place = placeOfError(runId);
  try {
    return payloads.encodeError(Object.assign(payloads.decodeError(error, place), { notUndone }), place);
  } catch {
    // Another codec wrote it: the history tells what was not undone.
    return error;
  }
}
