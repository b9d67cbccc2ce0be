import { test as base } from "pawl-test-support";
import { createPawl, type Pawl, type PawlOptions } from "../../src/index.ts";

/** Pawls for one test that share a place to keep runs in. */
export interface Place {
  readonly name: string;
  /** Another process would have one of its own; in memory there is but one. */
  open(options?: Partial<PawlOptions>): Promise<Pawl>;
}

/** Calls the test once in memory and once with Postgres. */
export function inBothPlaces(name: string, act: (place: Place) => Promise<void>): void {
  base(`${name} (memory)`, async () => {
    let only: Pawl | undefined;
    const open = async (options = {}): Promise<Pawl> => (only ??= createPawl({ memory: true, ...options }));
    await act({ name: "memory", open });
    await only?.close();
  });
  base(`${name} (Postgres)`, async ({ database, schema }) => {
    const opened: Pawl[] = [];
    const open = async (options = {}): Promise<Pawl> => {
      const pawl = createPawl({ url: database.url, schema, connections: 3, ...options });
      opened.push(pawl);
      await pawl.migrate();
      return pawl;
    };
    await act({ name: "Postgres", open });
    await Promise.all(opened.map((pawl) => pawl.close()));
  });
}
