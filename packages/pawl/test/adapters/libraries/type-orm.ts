import { DataSource, type EntityManager, EntitySchema } from "typeorm";
import { fromTypeOrm, withTypeOrm } from "../../../src/adapters/index.ts";
import type { Library, OpenTransaction } from "../library.ts";

const purchase = new EntitySchema<{ id: number }>({
  name: "purchase",
  columns: { id: { type: Number, primary: true } },
});

function opened(manager: EntityManager): OpenTransaction {
  return {
    tx: fromTypeOrm(manager),
    handle: manager,
    insert: (id) => manager.insert(purchase, { id }),
    nested: (act) => manager.transaction((inner) => act(opened(inner))),
  };
}

export const typeOrm: Library = {
  name: "TypeORM",
  hasSavepoints: true,
  async open(url) {
    const source = new DataSource({ type: "postgres", url, entities: [purchase], poolSize: 3 });
    await source.initialize();
    return {
      transactor: (options) => withTypeOrm(source, options),
      insert: (tx, id) => opened(tx as EntityManager).insert(id),
      transaction: (act) => source.transaction((manager) => act(opened(manager))),
      wrapOutside: () => fromTypeOrm(source.manager),
      close: () => source.destroy(),
    };
  },
};
