import createKnex, { type Knex } from "knex";
import { fromKnex, withKnex } from "../../../src/adapters/index.ts";
import type { Library, OpenTransaction } from "../library.ts";

function opened(trx: Knex.Transaction): OpenTransaction {
  return {
    tx: fromKnex(trx),
    handle: trx,
    insert: (id) => trx("purchase").insert({ id }).then(),
    nested: (act) => trx.transaction((inner) => act(opened(inner))),
  };
}

export const knex: Library = {
  name: "Knex",
  hasSavepoints: true,
  async open(connection) {
    const db = createKnex({ client: "pg", connection, pool: { min: 0, max: 3 } });
    return {
      transactor: (options) => withKnex(db, options),
      insert: (tx, id) => opened(tx as Knex.Transaction).insert(id),
      transaction: (act) => db.transaction((trx) => act(opened(trx))),
      wrapOutside: () => fromKnex(db),
      close: () => db.destroy(),
    };
  },
};
