import pg from "pg";
import { withPg } from "../../../src/adapters/index.ts";
import { assertTransaction } from "../../../src/core/transaction.ts";
import type { Library, OpenTransaction } from "../library.ts";

function opened(client: pg.Client): OpenTransaction {
  return {
    tx: client,
    handle: null,
    insert: (id) => client.query("insert into purchase (id) values ($1)", [id]),
    async nested(act) {
      await client.query("savepoint inner_one");
      try {
        await act(opened(client));
        await client.query("release savepoint inner_one");
      } catch (error) {
        await client.query("rollback to savepoint inner_one");
        throw error;
      }
    },
  };
}

/** A client as it is. */
export const plainPg: Library = {
  name: "pg",
  hasSavepoints: true,
  async open(connectionString) {
    const client = new pg.Client({ connectionString });
    await client.connect();
    const pool = new pg.Pool({ connectionString, max: 3 });
    pool.on("error", () => {});
    // One that dies while it is lent says so, and unheard would end the process.
    pool.on("connect", (client) => void client.on("error", () => {}));
    return {
      transactor: (options) => withPg(pool, options),
      insert: (tx, id) => opened(tx as pg.Client).insert(id),
      async transaction(act) {
        await client.query("begin");
        try {
          await act(opened(client));
        } catch (error) {
          await client.query("rollback");
          throw error;
        }
        await client.query("commit");
      },
      wrapOutside() {
        assertTransaction("start", client);
        return client;
      },
      async close() {
        await client.end();
        await pool.end();
      },
    };
  },
};
