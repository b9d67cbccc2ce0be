import { PrismaPg } from "@prisma/adapter-pg";
import { fromPrisma, withPrisma } from "../../../src/adapters/index.ts";
import type { Library, OpenTransaction } from "../library.ts";
import { PrismaClient } from "./prisma-client.generated.ts";

/** The part of the generated types that is used here. */
interface Purchases {
  readonly purchase: { create(query: { readonly data: { readonly id: number } }): PromiseLike<unknown> };
  $queryRawUnsafe<Rows = unknown>(text: string, ...values: unknown[]): PromiseLike<Rows>;
}
interface Client extends Purchases {
  $transaction<T>(act: (tx: Purchases) => Promise<T>, options?: object): Promise<T>;
  $disconnect(): Promise<void>;
}

/** It has no savepoints. */
function opened(tx: Purchases): OpenTransaction {
  return {
    tx: fromPrisma(tx),
    handle: tx,
    async insert(id) {
      await tx.purchase.create({ data: { id } });
    },
  };
}

export const prisma: Library = {
  name: "Prisma",
  hasSavepoints: false,
  async open(connectionString) {
    const client = new PrismaClient({
      adapter: new PrismaPg({ connectionString, max: 3 }),
    }) as unknown as Client;
    return {
      transactor: (options) => withPrisma(client, { ...options, timeout: 60_000 }),
      insert: (tx, id) => opened(tx as Purchases).insert(id),
      transaction: (act) => client.$transaction((tx) => act(opened(tx))),
      wrapOutside: () => fromPrisma(client),
      close: () => client.$disconnect(),
    };
  },
};
