import type { Socket } from "node:net";
import type pg from "pg";
import { PawlError } from "../../packages/pawl/src/core/error.ts";
import { migrations, type Migration } from "../../packages/pawl/src/postgres/migrations.generated.ts";
import { PrivateServer } from "../../test-support/private-server.ts";
import type { Scene, SceneTools } from "../scenes/scene.ts";
import { migrateWith, openPool, readState } from "./migrating.ts";
import { splitStatements } from "./statements.ts";

/** What a migrator loses its connection behind. */
const endSelf = "select pg_terminate_backend(pg_backend_pid());";
const sampleSize = 24;

/** A migrator dies after each statement of each migration; the next one begins where the last commit was. */
export const cutAtStatements: Scene = {
  name: "cut-at-statements",
  faults: ["migrator lost its connection behind a statement"],
  async act({ rng, isLong, landed, figure, report }) {
    await using server = await PrivateServer.start({ fsync: "off" });
    const pool = openPool(await server.createDatabase("cut"));
    await using _ = { [Symbol.asyncDispose]: () => pool.end() };
    await migrateWith(pool);
    const whole = await readState(pool);
    const places = migrations.flatMap((migration, index) =>
      splitStatements(migration.sql).map((_statement, nth) => ({ index, nth })),
    );
    const chosen = isLong
      ? places
      : places.filter(({ nth }) => nth === 0 || rng.chance(sampleSize / places.length));
    for (const place of chosen) {
      // Every other time the migrations before are there already: an upgrade, and not a first installation.
      const before = rng.chance(0.5) ? place.index : 0;
      await pool.query("drop schema if exists pawl cascade");
      if (before > 0) await migrateWith(pool, migrations.slice(0, before));
      const stateBefore = await readState(pool);
      const error = await migrateWith(pool, spoil(place)).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      if (PawlError.is(error, "STORE_UNAVAILABLE")) landed("migrator lost its connection behind a statement");
      else report("I1", "a migration that was cut off does not say so", place, String(error));
      if ((await readState(pool)) !== stateBefore)
        report("I1", "a migration that was cut off left something behind", place);
      const { applied } = await migrateWith(pool);
      if (applied.length !== migrations.length - before || (await readState(pool)) !== whole)
        report("I1", "a migration that was cut off is not completed by the next", place, applied);
    }
    figure(`${chosen.length} of ${places.length} statements`);
  },
};

function spoil({ index, nth }: { readonly index: number; readonly nth: number }): readonly Migration[] {
  return migrations.map((migration, at) => {
    if (at !== index) return migration;
    const statements = splitStatements(migration.sql);
    const sql = [...statements.slice(0, nth + 1), endSelf, ...statements.slice(nth + 1)].join("\n");
    return { ...migration, sql };
  });
}

/** The migrator's socket is gone after each message it sends, COMMIT included: the server may go on, nobody hears of it. */
export const cutAtMessages: Scene = {
  name: "cut-at-messages",
  faults: ["migrator died behind a message", "migrator died behind its COMMIT"],
  async act(tools) {
    await using server = await PrivateServer.start({ fsync: "off" });
    const url = await server.createDatabase("cut");
    const pool = openPool(url);
    await using _ = { [Symbol.asyncDispose]: () => pool.end() };
    await migrateWith(pool);
    const whole = await readState(pool);
    const total = await cutBehind(Number.POSITIVE_INFINITY, url, pool, whole, tools);
    for (let nth = 1; nth <= total; nth += tools.isLong || nth > total - 3 ? 1 : 3)
      await cutBehind(nth, url, pool, whole, tools);
  },
};

/** Answers how many messages the migrator sent. */
async function cutBehind(
  nth: number,
  url: string,
  pool: pg.Pool,
  whole: string,
  { landed, report }: SceneTools,
): Promise<number> {
  await pool.query("drop schema if exists pawl cascade");
  const doomed = openPool(url, 1);
  const messages: string[] = [];
  doomed.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
    Object.assign(client, {
      query(...args: readonly unknown[]) {
        const answer = query(...args);
        messages.push(typeof args[0] === "string" ? args[0] : "");
        if (messages.length === nth) setImmediate(() => socketOf(client).destroy());
        return answer;
      },
    });
  });
  const error = await migrateWith(doomed).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  await doomed.end();
  const last = messages[nth - 1];
  if (last === undefined) return messages.length;
  landed("migrator died behind a message");
  if (last === "commit") landed("migrator died behind its COMMIT");
  if (!PawlError.is(error, "STORE_UNAVAILABLE"))
    report("I1", "a migrator that lost its connection says something else", nth, String(error));
  await migrateWith(pool);
  if ((await readState(pool)) !== whole)
    report("I1", "the migrator after one that died did not complete it", nth, last);
  return messages.length;
}

function socketOf(client: pg.Client): Socket {
  const { connection } = client as unknown as { readonly connection: { readonly stream: Socket } };
  return connection.stream;
}
