import { invalidTransaction, type Transaction } from "../core/transaction.ts";
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
  if ("$connect" in tx)
    throw invalidTransaction(
      "fromPrisma takes what prisma.$transaction(async (tx) => …) gives, not the client itself.",
    );
  return {
    async query(text, values) {
      return rowsOf(await tx.$queryRawUnsafe(text, ...(values as never[])));
    },
  };
}
