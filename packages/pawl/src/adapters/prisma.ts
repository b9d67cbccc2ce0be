import { checkInteger } from "../core/options.ts";
import type { Transaction } from "../core/transaction.ts";
import type { Isolation, Transactor } from "../core/transactor.ts";
import { createTransactor, readTransactorOptions, type TransactorOptions } from "./create-transactor.ts";
import { assertMethod, assertTransactionOf } from "./refuse-others.ts";
import { rowsOf } from "./rows-of.ts";

/** What `prisma.$transaction(async (tx) => …)` gives. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: never[]): PromiseLike<unknown>;
}

/**
 * An interactive transaction of Prisma.
 * @throws {PawlError} `INVALID_TRANSACTION` for what is none, such as the client itself
 * @example
 * await prisma.$transaction(async (tx) => {
 *   await tx.order.create({ data: { id: 9182 } });
 *   await pawl.start(checkout, { orderId: 9182 }, { tx: fromPrisma(tx) });
 * });
 */
export function fromPrisma(tx: PrismaTransaction): Transaction {
  assertTransactionOf(
    () => typeof tx.$queryRawUnsafe === "function" && !("$connect" in tx),
    "fromPrisma takes what prisma.$transaction(async (tx) => …) gives, not the client itself.",
  );
  return {
    async query(text, values) {
      return rowsOf(await tx.$queryRawUnsafe(text, ...(values as never[])));
    },
  };
}

/** A client of Prisma. */
export interface PrismaDatabase<Tx> {
  $transaction<T>(work: (tx: Tx) => Promise<T>, options?: never): Promise<T>;
}

/** As Prisma counts, from when a connection is there. */
export interface PrismaTransactorOptions extends TransactorOptions {
  /** How long the function may take, in ms: Prisma's own `timeout`. Default: Prisma's, 5,000. */
  readonly timeout?: number;
}

/**
 * Interactive transactions of Prisma.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * await ctx.transaction("record", (tx) => tx.order.create({ data: { id: 9182 } }), { on: withPrisma(prisma) });
 */
export function withPrisma<Tx extends PrismaTransaction>(
  prisma: PrismaDatabase<Tx>,
  options: PrismaTransactorOptions = {},
): Transactor<Tx> {
  assertMethod("withPrisma", prisma, "$transaction");
  const { timeout, ...rest } = readTransactorOptions<PrismaTransactorOptions>("withPrisma", options, {
    timeout: checkInteger(1, 2 ** 31 - 1),
  });
  const begin: Transactor<Tx>["begin"] = (work, { isolation } = {}) => {
    const isolationLevel = isolation === undefined ? undefined : isolationLevels[isolation];
    const given = {
      ...(isolationLevel !== undefined && { isolationLevel }),
      ...(timeout !== undefined && { timeout }),
    };
    return prisma.$transaction((tx) => work(tx, fromPrisma(tx)), given as never);
  };
  return createTransactor<Tx>("withPrisma", rest, begin);
}

const isolationLevels: Readonly<Record<Isolation, string>> = {
  "read committed": "ReadCommitted",
  "repeatable read": "RepeatableRead",
  serializable: "Serializable",
};
