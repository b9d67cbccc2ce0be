import type pg from "pg";

/** What the server says about a statement before it is run. */
export interface StatementShape {
  /** Type ids. */
  readonly parameters: readonly number[];
  readonly columns: readonly { readonly name: string; readonly type: number }[];
}

interface Wire extends NodeJS.EventEmitter {
  parse(query: { text: string; name: string }): void;
  describe(what: { type: "S"; name: string }): void;
  sync(): void;
}

/** Prepares the statement on the server and reads back its shape. Nothing is run. */
export function describeStatement(client: pg.Client, text: string): Promise<StatementShape> {
  return new Promise((resolve, reject) => {
    let parameters: readonly number[] = [];
    let columns: StatementShape["columns"] = [];
    const onParameters = (message: { readonly dataTypeIDs: readonly number[] }): void => {
      parameters = message.dataTypeIDs;
    };
    const { connection } = client as unknown as { readonly connection: Wire };
    // What the driver calls a query: it takes the connection, and hears what comes back.
    const query = {
      submit(wire: Wire) {
        wire.on("parameterDescription", onParameters);
        wire.parse({ text, name: "" });
        wire.describe({ type: "S", name: "" });
        wire.sync();
      },
      handleRowDescription(message: { readonly fields: readonly { name: string; dataTypeID: number }[] }) {
        columns = message.fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }));
      },
      handleReadyForQuery() {
        connection.off("parameterDescription", onParameters);
        resolve({ parameters, columns });
      },
      handleError(error: Error) {
        connection.off("parameterDescription", onParameters);
        reject(error);
      },
    };
    client.query(query as unknown as pg.Submittable);
  });
}
