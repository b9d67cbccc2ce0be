import {
  CamelCasePlugin,
  type ControlledTransaction,
  Kysely,
  PostgresDialect,
  type Transaction,
} from "kysely";
import pg from "pg";
import { fromKysely, withKysely } from "../../../src/adapters/index.ts";
import type { Library, OpenTransaction } from "../library.ts";

interface Tables {
  readonly purchase: { readonly id: number };
}

function opened(trx: Transaction<Tables>): OpenTransaction {
  return {
    tx: fromKysely(trx),
    handle: trx,
    insert: (id) => trx.insertInto("purchase").values({ id }).execute(),
  };
}

/** Only transactions that are ended by hand have savepoints. */
function openedByHand(trx: ControlledTransaction<Tables>): OpenTransaction {
  return {
    ...opened(trx),
    async nested(act) {
      const inner = await trx.savepoint("inner_one").execute();
      try {
        await act(opened(inner));
        await inner.releaseSavepoint("inner_one").execute();
      } catch (error) {
        await inner.rollbackToSavepoint("inner_one").execute();
        throw error;
      }
    },
  };
}

const connect = (connectionString: string): Kysely<Tables> => {
  const pool = new pg.Pool({ connectionString, max: 3 });
  pool.on("error", () => {});
  // One that dies while it is lent says so, and unheard would end the process.
  pool.on("connect", (client) => void client.on("error", () => {}));
  return new Kysely<Tables>({
    dialect: new PostgresDialect({ pool }),
    // It renames the columns of every answer, of ours too.
    plugins: [new CamelCasePlugin()],
  });
};

export const kysely: Library = {
  name: "Kysely",
  hasSavepoints: false,
  async open(url) {
    const db = connect(url);
    return {
      transactor: (options) => withKysely(db, options),
      insert: (tx, id) => opened(tx as Transaction<Tables>).insert(id),
      transaction: (act) => db.transaction().execute((trx) => act(opened(trx))),
      wrapOutside: () => fromKysely(db),
      close: () => db.destroy(),
    };
  },
};

export const kyselyByHand: Library = {
  name: "Kysely with transactions ended by hand",
  hasSavepoints: true,
  async open(url) {
    const db = connect(url);
    return {
      transactor: (options) => withKysely(db, options),
      insert: (tx, id) => opened(tx as Transaction<Tables>).insert(id),
      async transaction(act) {
        const trx = await db.startTransaction().execute();
        try {
          await act(openedByHand(trx));
        } catch (error) {
          await trx.rollback().execute();
          throw error;
        }
        await trx.commit().execute();
      },
      wrapOutside: () => fromKysely(db),
      close: () => db.destroy(),
    };
  },
};
