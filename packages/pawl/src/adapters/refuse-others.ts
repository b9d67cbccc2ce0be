import { invalidOption } from "../core/options.ts";
import { invalidTransaction } from "../core/transaction.ts";

/** Refuses what is no transaction of a library. @throws {PawlError} `INVALID_TRANSACTION` */
export function assertTransactionOf(isOne: () => boolean, message: string): void {
  if (!holds(isOne)) throw invalidTransaction(message);
}

/**
 * Refuses what has no such method, and so is not what the library makes.
 * @param what takes it, as in `withPg`
 * @throws {PawlError} `INVALID_OPTION`
 */
export function assertMethod(what: string, database: unknown, method: string): void {
  const hasIt = (): boolean => typeof (database as Readonly<Record<string, unknown>>)[method] === "function";
  if (!holds(hasIt)) throw invalidOption(what, "database", `must have a method ${method}`);
}

/** A value may throw at whoever looks at it, as null does. */
function holds(test: () => boolean): boolean {
  try {
    return test();
  } catch {
    return false;
  }
}
