import { createPawl, PawlError, type RunHandle } from "../../packages/pawl/src/index.ts";
import { migrations, type Migration } from "../../packages/pawl/src/postgres/migrations.generated.ts";
import { PrivateServer } from "../../test-support/private-server.ts";
import { ledgerSql, writeLedger } from "../scenes/ledger.ts";
import type { Scene } from "../scenes/scene.ts";
import { createWorkflows, order } from "../scenes/workflows.ts";
import { migrateWith, newest, oneMore, openPool } from "./migrating.ts";

async function refusalOf(act: () => Promise<unknown>): Promise<string> {
  try {
    await act();
    return "none";
  } catch (error) {
    return PawlError.is(error) ? error.code : String(error);
  }
}

/** A library newer than the schema, by one migration, two, or all: it refuses to work, and what it accepts is kept. */
export const newWorkerOldSchema: Scene = {
  name: "new-worker-old-schema",
  faults: ["worker refused an older schema", "run started on an older schema"],
  async act({ rng, isLong, landed, report }) {
    await using server = await PrivateServer.start({ fsync: "off" });
    for (let version = 0; version < newest; version += isLong ? 1 : 1 + rng.below(4)) {
      const url = await server.createDatabase(`old_${version}`);
      const pool = openPool(url);
      await using _ = { [Symbol.asyncDispose]: () => pool.end() };
      await pool.query(ledgerSql);
      if (version > 0) await migrateWith(pool, migrations.slice(0, version));
      await using pawl = createPawl({ url });
      const workflows = createWorkflows("first", (runId, step) => writeLedger(pool, runId, step));
      const refusal = await refusalOf(() => pawl.worker({ workflows }).start());
      if (refusal === (version === 0 ? "SCHEMA_MISSING" : "SCHEMA_TOO_OLD"))
        landed("worker refused an older schema");
      else report("I14", `a worker on version ${version} of ${newest} is refused by: ${refusal}`);
      const run = await pawl.start(order).catch((error: unknown) => {
        if (!PawlError.is(error, "SCHEMA_MISSING")) report("I1", "a start was refused oddly", String(error));
        return null;
      });
      await pawl.migrate();
      const { rows } = await pool.query("select (select count(*) from pawl.run)::int as runs");
      if (JSON.stringify(rows) !== JSON.stringify([{ runs: run === null ? 0 : 1 }]))
        report("I1", `on version ${version} a start was acknowledged ${run === null ? "not" : "once"}`, rows);
      if (run === null) continue;
      landed("run started on an older schema");
      await pawl.worker({ workflows }).start();
      await finish(run);
    }
  },
};

async function finish(run: RunHandle): Promise<void> {
  for (const name of ["pay", "ship"]) await run.signal(name);
  await run.result({ signal: AbortSignal.timeout(20_000) });
}

/** A library older than the schema: works where the change allows it, refuses where not. */
export const oldWorkerNewSchema: Scene = {
  name: "old-worker-new-schema",
  faults: ["worker went on under a newer schema", "worker refused a breaking schema"],
  async act({ landed, report }) {
    await using server = await PrivateServer.start({ fsync: "off" });
    const url = await server.createDatabase("newer");
    const pool = openPool(url);
    await using _ = { [Symbol.asyncDispose]: () => pool.end() };
    await pool.query(ledgerSql);
    await using pawl = createPawl({ url });
    await pawl.migrate();
    const workflows = createWorkflows("first", (runId, step) => writeLedger(pool, runId, step));
    await pawl.worker({ workflows }).start();
    const before = await pawl.start(order);
    // It changes a table that the worker's prepared statements know.
    await migrateWith(pool, [...migrations, oneMore]);
    await finish(before);
    await using later = createPawl({ url });
    await later.worker({ workflows }).start();
    await finish(await later.start(order));
    landed("worker went on under a newer schema", 2);

    const breaking: Migration = { ...oneMore, version: newest + 2, breaking: true, sql: "select 1" };
    await migrateWith(pool, [...migrations, oneMore, breaking]);
    await using last = createPawl({ url });
    const refusal = await refusalOf(() => last.worker({ workflows }).start());
    if (refusal === "SCHEMA_TOO_NEW") landed("worker refused a breaking schema");
    else report("I14", `a worker on a schema that it cannot live with is refused by: ${refusal}`);
    const migrating = await refusalOf(() => last.migrate());
    if (migrating !== "SCHEMA_TOO_NEW") report("I14", `an old migrator is refused by: ${migrating}`);
  },
};
