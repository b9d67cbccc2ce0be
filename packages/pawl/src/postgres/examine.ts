import type { StoreReport } from "../store/store-report.ts";
import type { Database, Row } from "./database.ts";
import { readApplied } from "./fitting-schema.ts";
import { transition } from "./transition.ts";

/** Asks for nothing of ours, so that it is answered whatever has become of the schema. $1: the table of migrations. */
const readServer = transition(
  "read_server",
  `select floor(extract(epoch from {clock}) * 1000)::float8 as now_ms,
          pg_catalog.current_setting('fsync') as fsync,
          pg_catalog.current_setting('full_page_writes') as full_page_writes,
          pg_catalog.current_setting('synchronous_commit') as synchronous_commit,
          pg_catalog.to_regclass($1::text) is not null as has_schema`,
);

/** Index: worker_unswept. */
const countAlive = transition(
  "count_alive",
  `select count(*)::integer as alive
     from {schema}.worker
    where swept_at is null
      and ended_at is null
      and heard_at > {clock} - lease_ms * interval '1 millisecond'`,
);

interface ServerRow extends Row {
  readonly now_ms: number;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly has_schema: boolean;
}

/** What the server itself says. */
export async function examineServer(
  database: Database,
  wantedVersion: number,
): Promise<Omit<StoreReport, "isPooled" | "listening">> {
  const [server] = await database.call<ServerRow>(readServer, [`${database.schema.quoted}.migration`]);
  const settings = ["fsync", "full_page_writes", "synchronous_commit"] as const;
  const unsafeSettings = settings.filter((setting) => server?.[setting] === "off");
  const now = server?.now_ms ?? 0;
  const { version, isFit } =
    server?.has_schema === true ? await readApplied(database) : { version: 0, isFit: false };
  const aliveWorkers = isFit ? await aliveIn(database) : null;
  return { now, version, wantedVersion, isFit, unsafeSettings, aliveWorkers };
}

async function aliveIn(database: Database): Promise<number> {
  const [row] = await database.call<{ readonly alive: number }>(countAlive, []);
  return row?.alive ?? 0;
}
