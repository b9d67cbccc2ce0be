import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import { integer, pgTable } from "drizzle-orm/pg-core";
import type { Knex } from "knex";
import type { Kysely } from "kysely";
import { workflow, type Pawl } from "pawl";
import { fromDrizzle, fromKnex, fromKysely, fromPostgresJs, fromTypeOrm } from "pawl/adapters";
import type { Sql } from "postgres";
import type { DataSource } from "typeorm";

const confirmOrder = workflow({ name: "confirm-order", version: 1 }, async (_ctx, _id: number) => {});
const orders = pgTable("orders", { id: integer("id").primaryKey() });

export const drizzle = (db: NodePgDatabase, pawl: Pawl) =>
  db.transaction(async (tx) => {
    await tx.insert(orders).values({ id: 1 });
    await pawl.start(confirmOrder, 1, { tx: fromDrizzle(tx) });
  });

export const kysely = (db: Kysely<{ orders: { id: number } }>, pawl: Pawl) =>
  db.transaction().execute(async (trx) => {
    await trx.insertInto("orders").values({ id: 1 }).execute();
    await pawl.start(confirmOrder, 1, { tx: fromKysely(trx) });
  });

export const knex = (db: Knex, pawl: Pawl) =>
  db.transaction(async (trx) => {
    await trx("orders").insert({ id: 1 });
    await pawl.start(confirmOrder, 1, { tx: fromKnex(trx) });
  });

export const typeOrm = (source: DataSource, pawl: Pawl) =>
  source.transaction(async (manager) => {
    await manager.insert("orders", { id: 1 });
    await pawl.start(confirmOrder, 1, { tx: fromTypeOrm(manager) });
  });

export const postgresJs = (sql: Sql, pawl: Pawl) =>
  sql.begin(async (tx) => {
    await tx`insert into orders (id) values (1)`;
    await pawl.start(confirmOrder, 1, { tx: fromPostgresJs(tx) });
  });
