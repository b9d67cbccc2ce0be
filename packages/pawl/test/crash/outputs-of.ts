import type { RunHandle } from "../../src/index.ts";
import type { Scene } from "./scene.ts";

/** What the runs return. If that takes too long, an error says which of them are stuck, and where. */
export async function outputsOf<Output>(
  scene: Scene,
  runs: readonly RunHandle<Output>[],
  withinMs = 30_000,
): Promise<readonly Output[]> {
  try {
    return await Promise.all(runs.map((run) => run.result({ signal: AbortSignal.timeout(withinMs) })));
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    throw isLate ? await describeStuck(scene, withinMs) : error;
  }
}

async function describeStuck({ pool, schema, crews }: Scene, withinMs: number): Promise<Error> {
  const { rows: stuck } = await pool.query<{ line: string }>(
    `select format('%s %s: %s, epoch %s, attempt %s, worker %s, parked as %s for %s until %s; last facts %s',
                   r.workflow, r.id, r.status, r.epoch, r.attempt, r.worker_id, r.park_reason, r.wants, r.due_at,
                   (select array_agg(e.seq || ' ' || e.kind || ' ' || coalesce(e.name, '') order by e.seq)
                      from (select * from ${schema}.event e where e.run_id = r.id order by seq desc limit 4) e)) as line
       from ${schema}.runs r
      where r.ended_at is null
      order by r.id
      limit 5`,
  );
  const { rows: waiting } = await pool.query<{ line: string }>(
    `select format('%s %s %s: %s', pid, state, wait_event, left(query, 80)) as line
       from pg_stat_activity
      where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`,
  );
  const logs = crews.flatMap((crew) =>
    crew.logs.filter(({ level }) => level === "warn" || level === "error"),
  );
  const lines = [...stuck, ...waiting].map(({ line }) => line);
  const said = logs.slice(-5).map((line) => JSON.stringify(line));
  return new Error([`Some runs are not done after ${withinMs} ms:`, ...lines, ...said].join("\n"));
}
