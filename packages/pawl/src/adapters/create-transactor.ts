import { identifierFault } from "../core/name.ts";
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

const checks = { foreign: checkFlag, schema: (value: unknown) => identifierFault(value) };

/**
 * Reads what a function of `pawl/adapters` was given.
 * @param more checks of options that only this one has
 * @throws {PawlError} `INVALID_OPTION`
 */
export function readTransactorOptions<Options extends TransactorOptions>(
  what: string,
  options: Options,
  more: Readonly<Record<string, Check>> = {},
): Options {
  return checkOptions(what, options, { ...checks, ...more });
}

/** @throws {PawlError} `INVALID_OPTION` */
export function createTransactor<Tx>(
  what: string,
  options: TransactorOptions,
  begin: Transactor<Tx>["begin"],
  checksCommit = false,
): Transactor<Tx> {
  const { foreign = false, schema = "public" } = readTransactorOptions(what, options);
  return { isForeign: foreign, checksCommit, completions: createCompletions(schema), begin };
}
