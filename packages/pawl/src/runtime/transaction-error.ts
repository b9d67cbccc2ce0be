import { PawlError } from "../core/error.ts";
import { isPassing, wrappedState } from "../core/sql-state.ts";
import { ConnectionLost } from "../core/transact.ts";
import { TurnMissed } from "./turns.ts";

/** The transaction is rolled back, and nothing speaks against another try. */
export class TryAgain extends Error {
  override readonly name = "TryAgain";
}

/** `P2034` is Prisma's word for the other two. */
const conflicts = new Set(["40001", "40P01", "P2034"]);
/** The server shuts down, or the connection is gone. */
const broken = /^(?:08...|57P0[123])$/;
/** The server has said that it refuses, and why. Of all other errors nobody knows when they came. */
const refusals = /^(?:2[2-5]|40|42|55|P0)/;

/** Whether calling the function again may help. */
export function mayPass(error: unknown): boolean {
  if (error instanceof TryAgain || error instanceof TurnMissed) return true;
  if (PawlError.is(error, "STORE_UNAVAILABLE")) return true;
  const state = wrappedState(error) ?? "";
  return conflicts.has(state) || broken.test(state);
}

/** The same where the function was not called: what failed is ours, or there is no connection. */
export function mayPassUncalled(error: unknown): boolean {
  return mayPass(error) || error instanceof ConnectionLost || isPassing(error) || isOfSystem(error);
}

function isOfSystem(error: unknown): boolean {
  return error instanceof Error && ("syscall" in error || isOfSystem(error.cause));
}

/** Whether a COMMIT that ended so has surely not been carried out. */
export function isRefusal(error: unknown): boolean {
  return PawlError.is(error, "TRANSACTION_ABORTED") || refusals.test(wrappedState(error) ?? "");
}
