import {
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPostgresJs,
  fromPrisma,
  fromTypeOrm,
  type Transaction,
} from "../../src/adapters/index.ts";

/** The handle of any library, known by what it has. */
export function fromAny(tx: unknown): Transaction {
  const has = (name: string): boolean => name in (tx as object);
  if (has("$queryRawUnsafe")) return fromPrisma(tx as never);
  if (has("executeQuery")) return fromKysely(tx as never);
  if (has("unsafe")) return fromPostgresJs(tx as never);
  if (has("dialect")) return fromDrizzle(tx as never);
  if (has("raw")) return fromKnex(tx as never);
  if (has("queryRunner")) return fromTypeOrm(tx as never);
  return tx as Transaction;
}
