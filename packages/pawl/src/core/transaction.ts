import { PawlError } from "./error.ts";

/**
 * A transaction of the caller's: a client of `pg` as it is, or what a function of `pawl/adapters` makes of another
 * library's. Whatever is done with it exists only if it commits.
 */
export interface Transaction {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/**
 * Refuses what is no transaction, before anything is sent. Whether one is open can be told of a client of `pg`, and the
 * adapters ask their libraries; of a handle of the caller's own making nothing more is known.
 * @param what takes it, as in `start`
 * @throws {PawlError} `INVALID_TRANSACTION`
 */
export function assertTransaction(what: string, tx: unknown): asserts tx is Transaction {
  const fault = readableFault(tx);
  if (fault !== null) throw invalidTransaction(`The tx given to ${what} ${fault}`, { what });
}

export function invalidTransaction(
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  options?: { readonly cause?: unknown },
): PawlError {
  return new PawlError("INVALID_TRANSACTION", message, details, options);
}

/** What a statement answers whose one column is a text named `answer`: null where it answers no row. */
export async function findAnswer(
  tx: Transaction,
  text: string,
  values: readonly unknown[],
): Promise<string | null> {
  const answer: unknown = await tx.query(text, [...values]);
  const rows = typeof answer === "object" && answer !== null && "rows" in answer ? answer.rows : null;
  const [row] = Array.isArray(rows) ? (rows as readonly unknown[]) : [null];
  if (row === undefined) return null;
  if (typeof row === "object" && row !== null && "answer" in row && typeof row.answer === "string")
    return row.answer;
  throw unreadable();
}

/** The same for a statement that always answers one. */
export async function readAnswer(tx: Transaction, text: string, values: readonly unknown[]): Promise<string> {
  const answer = await findAnswer(tx, text, values);
  if (answer === null) throw unreadable();
  return answer;
}

function unreadable(): PawlError {
  return invalidTransaction(
    "The transaction's query(text, values) must resolve to { rows }, with a row as an object by its columns' names.",
  );
}

/** A value may throw at whoever looks at it. */
function readableFault(tx: unknown): string | null {
  try {
    return faultOf(tx);
  } catch {
    return "cannot be read.";
  }
}

function faultOf(tx: unknown): string | null {
  if ((typeof tx !== "object" && typeof tx !== "function") || tx === null)
    return "must be a transaction: a client of pg, or what a function of pawl/adapters makes.";
  const has = (name: string): boolean => name in tx;
  const isMethod = (name: string): boolean =>
    typeof (tx as Readonly<Record<string, unknown>>)[name] === "function";

  const foreign = libraries.find(({ isIts }) => isIts(has, isMethod));
  if (foreign !== undefined) {
    const { library, adapter } = foreign;
    return `is of ${library}: pass { tx: ${adapter}(tx) }, with ${adapter} from "pawl/adapters".`;
  }
  if (!isMethod("query")) return "has no query(text, values).";
  if (has("totalCount") && has("idleCount"))
    return "is a pool, whose queries each go to any connection: take one with pool.connect(), begin, and pass that client.";
  return isIdle(tx)
    ? 'is a connection without an open transaction: await client.query("begin") first.'
    : null;
}

interface Library {
  readonly library: string;
  readonly adapter: string;
  readonly isIts: (has: (name: string) => boolean, isMethod: (name: string) => boolean) => boolean;
}

/** How the handles of other libraries are known, transactions or not. Some have a `query` too, which answers otherwise. */
const libraries: readonly Library[] = [
  { library: "Prisma", adapter: "fromPrisma", isIts: (_, isMethod) => isMethod("$queryRawUnsafe") },
  { library: "Kysely", adapter: "fromKysely", isIts: (_, isMethod) => isMethod("executeQuery") },
  { library: "postgres.js", adapter: "fromPostgresJs", isIts: (_, isMethod) => isMethod("unsafe") },
  {
    library: "Drizzle",
    adapter: "fromDrizzle",
    isIts: (has, isMethod) => isMethod("execute") && has("dialect"),
  },
  { library: "Knex", adapter: "fromKnex", isIts: (has, isMethod) => isMethod("raw") && has("client") },
  {
    library: "TypeORM",
    adapter: "fromTypeOrm",
    isIts: (has) => has("queryRunner") || has("isTransactionActive") || has("createQueryRunner"),
  },
];

/** What the server last said of a connection of `pg`: idle, in a transaction, or in a failed one. Older ones do not tell. */
function isIdle(tx: object): boolean {
  const { getTransactionStatus } = tx as { getTransactionStatus?: () => string | null };
  return getTransactionStatus?.call(tx) === "I";
}
