import { PawlError } from "../core/error.ts";
import { checkInteger, checkOneOf, checkOptions, type Check } from "../core/options.ts";
import { checkWorkflowRetry, type WorkflowRetryOptions } from "../core/retry.ts";
import type { Isolation, Transactor } from "../core/transactor.ts";
import type { StepContext } from "./step-context.ts";
import { readStepOptions, type StepTerms } from "./step-options.ts";

/** What `ctx.transaction` takes after its function. */
export interface TransactionOptions<Tx> {
  /** Whose transactions: what `withDrizzle(db)` and its like of `pawl/adapters` make. Default: Pawl's own connections. */
  readonly on?: Transactor<Tx>;
  /** Default: as the database is set. */
  readonly isolation?: Isolation;
  /**
   * How often the function is called in all, while the database says that it is in conflict with others (a serialization
   * failure, a deadlock) or the connection breaks. Then the last error is the step's. Default 10; 1 means once.
   */
  readonly conflictAttempts?: number;
  /** When the function throws, as for a step. Default: one attempt. */
  readonly retry?: WorkflowRetryOptions;
}

/** A transaction that the code asks for. */
export interface TransactionTerms {
  readonly on: Transactor<unknown> | null;
  readonly isolation: Isolation | undefined;
  readonly conflictAttempts: number;
  readonly call: (tx: unknown, step: StepContext) => unknown;
}

const checkTransactor: Check = (value) => {
  const { begin, completions } = (value ?? {}) as Partial<Transactor<unknown>>;
  return typeof begin === "function" && typeof completions === "object"
    ? null
    : "must be what a function of pawl/adapters makes, such as withPg(pool) or withDrizzle(db)";
};

/** @throws {PawlError} `INVALID_OPTION` */
export function readTransactionTerms(
  name: string,
  call: TransactionTerms["call"],
  options: TransactionOptions<unknown>,
): TransactionTerms & { readonly terms: StepTerms } {
  if (typeof call !== "function")
    throw new PawlError("INVALID_OPTION", `The transaction "${name}" needs a function to call.`);
  const given = checkOptions("transaction", options, {
    on: checkTransactor,
    isolation: checkOneOf("read committed", "repeatable read", "serializable"),
    conflictAttempts: checkInteger(1, 1_000),
    retry: checkWorkflowRetry,
  });
  const { on = null, isolation, conflictAttempts = 10, retry } = given;
  const terms = readStepOptions(retry === undefined ? undefined : { retry });
  return { on, isolation, conflictAttempts, call, terms };
}
