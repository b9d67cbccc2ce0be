import { checkFlag, checkOptions, type Check } from "../core/options.ts";
import type { Transactor } from "../core/transactor.ts";
import { createCompletions } from "./completion-table.ts";

/** What the functions of `pawl/adapters` that begin transactions take. */
export interface TransactorOptions {
  /**
   * True: the library's database is another than the one that Pawl's runs live in. It needs the completion table then.
   * Default false: a transaction that turns out to be in another database is refused.
   */
  readonly foreign?: boolean;
  /** The schema of the completion table. Default `"public"`. */
  readonly schema?: string;
}

const checkSchema: Check = (value) =>
  typeof value === "string" && value !== "" && !value.includes("\0") ? null : "must be the name of a schema";

/** @throws {PawlError} `INVALID_OPTION` */
export function createTransactor<Tx>(
  what: string,
  options: TransactorOptions,
  begin: Transactor<Tx>["begin"],
  checksCommit = false,
): Transactor<Tx> {
  const { foreign = false, schema = "public" } = checkOptions(what, options, {
    foreign: checkFlag,
    schema: checkSchema,
  });
  return { isForeign: foreign, checksCommit, completions: createCompletions(schema), begin };
}
