import { setTimeout as delay } from "node:timers/promises";
import type pg from "pg";

/**
 * Waits until nobody on this server has a snapshot from before now, in whichever database. Until then a look cannot mark
 * the index entries of dead rows, and every look steps over them again.
 */
export async function untilNoOlderSnapshot(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ id: string }>("select pg_current_xact_id()::text as id");
  const text = "select pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 as over";
  const isOver = async (): Promise<boolean> =>
    (await client.query<{ over: boolean }>(text, [rows[0]!.id])).rows[0]!.over;
  while (!(await isOver())) await delay(5);
}
