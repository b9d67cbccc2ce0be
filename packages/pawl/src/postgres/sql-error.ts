import { PawlError } from "../core/error.ts";
import { sqlState } from "../core/sql-state.ts";

/**
 * What an error from the driver means for a call:
 * - `item`: something in this batch is bad or blocked; the others may succeed without it.
 * - `unavailable`: no answer. The call may or may not have been carried out; repeating it is safe.
 * - `final`: repeating it cannot help.
 */
export type SqlFailure = "item" | "unavailable" | "final";

const blockedStates = new Set(["55P03", "40P01", "40001"]);
/**
 * Shutting down, out of connections, memory or disk, read-only, a password that is being changed; or this connection is
 * in somebody's transaction, or has forgotten our statements. It may pass, on another connection.
 */
const passingStates = new Set(["55000", "0A000"]);
const passingClasses = new Set(["08", "25", "26", "28", "53", "57", "58", "XX"]);
const dataClasses = new Set(["22", "23", "54"]);

export function classifyFailure(error: unknown): SqlFailure {
  const state = sqlState(error);
  if (state === null || isNotifyQueueFull(error)) return "unavailable";
  if (blockedStates.has(state) || dataClasses.has(state.slice(0, 2))) return "item";
  if (passingStates.has(state) || passingClasses.has(state.slice(0, 2))) return "unavailable";
  return "final";
}

/** It empties once whoever listens in an old transaction goes on. The same code speaks of values that are too large. */
function isNotifyQueueFull(error: unknown): boolean {
  return (error as { readonly routine?: string }).routine === "PreCommit_Notify";
}

/** Whether somebody else holds what the statement needs. */
export function isBlocked(error: unknown): boolean {
  const state = sqlState(error);
  return state !== null && blockedStates.has(state);
}

/** Translates what the driver threw; SQLSTATEs go no further than this folder. */
export function translateError(error: unknown, statement: string): PawlError {
  if (error instanceof PawlError) return error;
  const state = sqlState(error);
  const text = error instanceof Error ? error.message : String(error);
  const details = { statement, sqlState: state };
  if (state === "PW001")
    return new PawlError(
      "WORKER_EXPIRED",
      "This worker has expired: its runs belong to others now.",
      details,
    );
  if (state === "42P01" || state === "42883" || state === "3F000") {
    return new PawlError(
      "SCHEMA_MISSING",
      `The schema is missing or too old for this library: run pawl.migrate(). (${text})`,
      details,
      {
        cause: error,
      },
    );
  }
  if (state === "42501") {
    return new PawlError(
      "DATABASE",
      `The database role may not do this: grant it with pawl.migrate({ grantTo }). (${text})`,
      details,
      {
        cause: error,
      },
    );
  }
  if (classifyFailure(error) === "unavailable" || isBlocked(error)) {
    return new PawlError(
      "STORE_UNAVAILABLE",
      `The database gave no answer to ${statement}: ${text}.`,
      details,
      { cause: error },
    );
  }
  return new PawlError("DATABASE", `The database refused ${statement}: ${text}.`, details, { cause: error });
}
