import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import { integer, pgTable } from "drizzle-orm/pg-core";
import type { Knex } from "knex";
import type { Kysely } from "kysely";
import type { Context } from "pawl";
import { withDrizzle, withKnex, withKysely, withPostgresJs, withTypeOrm } from "pawl/adapters";
import type { Sql } from "postgres";
import type { DataSource } from "typeorm";

const orders = pgTable("orders", { id: integer("id").primaryKey() });

export const drizzle = async (ctx: Context, db: NodePgDatabase) =>
  ctx.transaction("record", async (tx) => void (await tx.insert(orders).values({ id: 1 })), {
    on: withDrizzle(db),
  });

export const kysely = async (ctx: Context, db: Kysely<{ orders: { id: number } }>) =>
  ctx.transaction(
    "record",
    async (trx) => void (await trx.insertInto("orders").values({ id: 1 }).execute()),
    {
      on: withKysely(db),
      isolation: "serializable",
    },
  );

export const knex = async (ctx: Context, db: Knex) =>
  ctx.transaction("record", async (trx) => void (await trx("orders").insert({ id: 1 })), {
    on: withKnex(db),
  });

export const typeOrm = async (ctx: Context, source: DataSource) =>
  ctx.transaction("record", async (manager) => void (await manager.insert("orders", { id: 1 })), {
    on: withTypeOrm(source),
  });

export const postgresJs = async (ctx: Context, sql: Sql) =>
  ctx.transaction("record", async (tx) => void (await tx`insert into orders (id) values (1)`), {
    on: withPostgresJs(sql),
  });
