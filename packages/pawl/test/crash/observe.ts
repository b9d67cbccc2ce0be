import type { RunHandle } from "../../src/index.ts";
import type { Scene } from "./scene.ts";
import type { WorkerProcess } from "./worker-process.ts";

/** Under how many ids a process has worked. */
export async function countIds({ pool, schema }: Scene, { pid }: WorkerProcess): Promise<number> {
  const { rowCount } = await pool.query(`select 1 from ${schema}.worker where pid = $1`, [pid]);
  return rowCount!;
}

/** How many of these runs a process has begun a step of. */
export async function countRuns(
  { pool }: Scene,
  { pid }: WorkerProcess,
  runs: readonly Pick<RunHandle, "id">[],
): Promise<number> {
  const { rows } = await pool.query<{ runs: number }>(
    "select count(distinct run_id)::int as runs from public.ledger where pid = $1 and run_id = any ($2)",
    [pid, runs.map(({ id }) => id)],
  );
  return rows[0]!.runs;
}

/** How many calls of steps have ended in a process. */
export async function countEnds({ pool }: Scene, { pid }: WorkerProcess): Promise<number> {
  const { rows } = await pool.query<{ ended: number }>(
    "select count(ended_at)::int as ended from public.ledger where pid = $1",
    [pid],
  );
  return rows[0]!.ended;
}

/** How many of them ended only after their result had been recorded, by another. */
export async function countLateEnds({ pool, schema }: Scene, { pid }: WorkerProcess): Promise<number> {
  const { rows } = await pool.query<{ late: number }>(
    `select count(*)::int as late
       from public.ledger l
       join ${schema}.event e on e.run_id = l.run_id and e.name = l.step and e.kind = 'step_completed'
      where l.pid = $1 and l.ended_at > e.at`,
    [pid],
  );
  return rows[0]!.late;
}
