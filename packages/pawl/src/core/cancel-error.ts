import type { Payload } from "./json.ts";

/**
 * The error of a run that was cancelled for a reason, which is its message; null where none was given. Postgres makes the
 * same one for runs that have not begun: see `cancel_unbegun_v1`.
 * @param data what the cancel said
 */
export function cancelError(data: Payload | null): Payload | null {
  const reason = cancelReason(data);
  if (reason === null) return null;
  return {
    json: JSON.stringify({ name: "PawlError", code: "RUN_CANCELLED", message: reason }),
    notes: null,
  };
}

/** Why the run was cancelled; null where nobody has said so. */
export function cancelReason(data: Payload | null): string | null {
  const said: unknown = data === null ? null : JSON.parse(data.json);
  const reason = typeof said === "object" && said !== null && "reason" in said ? said.reason : null;
  return typeof reason === "string" ? reason : null;
}
