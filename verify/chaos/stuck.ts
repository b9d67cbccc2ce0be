import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import type { Workforce } from "./workforce.ts";

const live = "select run_id from pawl.live_runs order by run_id limit 20";

/** What to know of a database in which something does not go on. */
const questions: Readonly<Record<string, string>> = {
  rooms: `select (select count(*) from pawl.ready) as ready, (select count(*) from pawl.ready where suspect) as suspects,
                 (select sum(cardinality(run_ids)) from pawl.pack) as packed, (select count(*) from pawl.lease) as lease, (select count(*) from pawl.parked) as parked`,
  workers:
    "select * from pawl.worker order by id in (select worker_id from pawl.live_runs where worker_id is not null) desc, started_at desc limit 30",
  "held runs":
    "select r.id, r.workflow, r.key, r.created_at, to_json(l) as lease, r.input from pawl.live_runs v join pawl.run r on r.id = v.run_id left join pawl.lease l on l.run_id = r.id where v.worker_id is not null limit 20",
  audit:
    "select * from chaos.log where run in (select run_id from pawl.live_runs where worker_id is not null order by 1 limit 5) or worker in (select worker_id from pawl.live_runs) and what in ('registered', 'heard', 'retired') order by n limit 1000",
  "live runs": `select r.id, r.workflow, r.key, r.parent_id, r.created_at, to_json(y) as ready, to_json(k) as pack, to_json(l) as lease, to_json(p) as parked, r.input
                  from pawl.run r left join pawl.ready y on y.run_id = r.id left join pawl.pack k on r.id = any (k.run_ids) left join pawl.lease l on l.run_id = r.id
                  left join pawl.parked p on p.run_id = r.id where r.id in (${live})`,
  histories: `select run_id, seq, kind, name, attempt, at, due_at, worker_id from pawl.event where run_id in (${live}) order by 1, 2`,
  inboxes: `select run_id, id, topic, name, sent_at, taken_seq from pawl.inbox where run_id in (${live}) order by 1, 5`,
  activity: "select * from pg_stat_activity where pid <> pg_backend_pid()",
  locks: "select *, pg_blocking_pids(pid) as blocked_by from pg_locks where not granted",
};

/** Writes down where everything stands, in the database and in the processes. Answers the folder. */
export async function dumpState(
  pool: pg.Pool,
  workforce: Workforce,
  schedule: readonly string[],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-chaos-"));
  const parts: string[] = [];
  for (const [question, sql] of Object.entries(questions)) {
    parts.push(`== ${question}`);
    try {
      const { rows } = await pool.query(sql);
      parts.push(...rows.map((row) => JSON.stringify(row)));
    } catch (error) {
      parts.push(String(error));
    }
  }
  parts.push("== logs", ...workforce.logs.slice(-200).map((line) => JSON.stringify(line)));
  await writeFile(join(folder, "database.txt"), parts.join("\n"));
  await writeFile(join(folder, "nemesis.txt"), schedule.join("\n"));
  workforce.writeReports((pid) => join(folder, `process-${pid}.json`));
  // They are written by the processes themselves.
  await pause(1_000);
  return folder;
}
