import { PawlError } from "../core/error.ts";
import { identifierFault } from "../core/name.ts";
import { checkOptions } from "../core/options.ts";
import { isPassing, wrappedState } from "../core/sql-state.ts";
import { transactionAborted } from "../core/transact.ts";
import { findAnswer, type Transaction } from "../core/transaction.ts";
import type { CompletionId, Completions, TakeOver, Transactor } from "../core/transactor.ts";
import { assertMethod } from "./refuse-others.ts";

/** Where the completion table is. */
export interface CompletionTableOptions {
  /** Default `"public"`. */
  readonly schema?: string;
}

const tableName = "pawl_completion";

/**
 * The migration of a database that `ctx.transaction` writes to and that is not Pawl's own: the table in which it is noted
 * which transactions have committed. It may be applied again. @throws {PawlError} `INVALID_OPTION`
 */
export function completionTableSql(options: CompletionTableOptions = {}): string {
  const { schema = "public" } = checkOptions("completionTableSql", options, { schema: identifierFault });
  const table = qualified(schema);
  return `create table if not exists ${table} (
  run_id uuid        not null,
  step   text        not null,
  token  uuid        not null,
  state  text        not null check (state in ('open', 'completed')),
  result json,
  notes  json,
  at     timestamptz not null default now(),
  primary key (run_id, step)
);`;
}

/** Applies `completionTableSql` to the transactor's database. @throws {PawlError} `INVALID_OPTION` */
export async function installCompletionTable(
  transactor: Transactor<unknown>,
  options: CompletionTableOptions = {},
): Promise<void> {
  assertMethod("installCompletionTable", transactor, "begin");
  const sql = completionTableSql(options).replace(/;$/, "");
  await transactor.begin(async (_, handle) => {
    await handle.query(sql, []);
  });
}

/** A key in many scopes may be longer than an index can hold. */
const step = `case when octet_length($2::text) <= 1000 then $2::text
                   else left($2::text, 200) || '#' || encode(sha256(convert_to($2::text, 'UTF8')), 'hex') end`;

// Each answers by a select, whose rows every library gives in the same way.

/** Waits for whoever is inserting or changing the row in an open transaction. */
const leaveTombstone = (table: string): string => `
  with tombstone as (
    insert into ${table} as c (run_id, step, token, state)
    values ($1::text::uuid, ${step}, $3::text::uuid, 'open')
    on conflict (run_id, step) do update set token = excluded.token, at = now() where c.state = 'open'
    returning c.state)
  select state as answer from tombstone`;

const readResult = (table: string): string => `
  select json_build_object('result', c.result::text, 'notes', c.notes::text)::text as answer
    from ${table} c
   where c.run_id = $1::text::uuid and c.step = ${step} and c.state = 'completed'`;

/** Where nobody can have left a tombstone, a row is a stranger's. */
const completeFirst = (table: string): string => `
  with completed as (
    insert into ${table} as c (run_id, step, token, state, result, notes)
    values ($1::text::uuid, ${step}, $3::text::uuid, 'completed', $4::text::json, $5::text::json)
    on conflict (run_id, step) do nothing
    returning c.state)
  select state as answer from completed`;

const completeOwn = (table: string): string => `
  with completed as (
    update ${table} c
       set state = 'completed', result = $4::text::json, notes = $5::text::json, at = now()
     where c.run_id = $1::text::uuid and c.step = ${step} and c.token = $3::text::uuid and c.state = 'open'
    returning c.state)
  select state as answer from completed`;

/** From here on a process that is stopped keeps whoever wants to take over waiting for 5 s at most. */
const limitIdling = (): string => `
  select set_config('idle_in_transaction_session_timeout', case
           when current_setting('idle_in_transaction_session_timeout')::interval
                between interval '1 millisecond' and interval '5 seconds'
           then current_setting('idle_in_transaction_session_timeout') else '5s' end, true) as answer`;

/** The completion table of a library's database. */
export function createCompletions(schema: string): Completions {
  const table = qualified(schema);

  const ask = async (
    tx: Transaction,
    text: (table: string) => string,
    values: readonly unknown[],
  ): Promise<string | null> => {
    try {
      return await findAnswer(tx, text(table), values);
    } catch (error) {
      throw translate(error, schema);
    }
  };

  return {
    async takeOver(tx, { runId, step, token }): Promise<TakeOver> {
      if ((await ask(tx, leaveTombstone, [runId, step, token])) !== null) return { state: "open" };
      const answer = await ask(tx, readResult, [runId, step]);
      if (answer === null) throw new PawlError("STORE_UNAVAILABLE", "The completion was removed meanwhile.");
      const { result, notes } = JSON.parse(answer) as { result: string | null; notes: string | null };
      return { state: "completed", result: result === null ? null : { json: result, notes } };
    },
    async complete(tx, { runId, step, token }: CompletionId, isFirst, result) {
      const values = [runId, step, token, result?.json ?? null, result?.notes ?? null];
      await ask(tx, limitIdling, []);
      return (await ask(tx, isFirst ? completeFirst : completeOwn, values)) !== null;
    },
  };
}

function translate(error: unknown, schema: string): unknown {
  switch (wrappedState(error) ?? "") {
    case "42P01":
    case "3F000":
      return new PawlError(
        "SCHEMA_MISSING",
        `The transaction's database has no table ${schema}.${tableName}: apply completionTableSql() to it, or call installCompletionTable.`,
        { schema, table: tableName },
        { cause: error },
      );
    case "25P02":
      return transactionAborted({ cause: error });
    default:
      // A statement of ours, and not of the function's.
      return isPassing(error)
        ? new PawlError("STORE_UNAVAILABLE", `No answer from ${schema}.${tableName}.`, {}, { cause: error })
        : error;
  }
}

function qualified(schema: string): string {
  return `"${schema.replaceAll('"', '""')}".${tableName}`;
}
