import { readdir, readFile } from "node:fs/promises";
import { Ground } from "../scenes/ground.ts";
import type { Scene, SceneTools } from "../scenes/scene.ts";
import { createRecordedWorkflows } from "./recorded-workflows.ts";

/** Rows as a release wrote them. */
export interface StoredHistory {
  /** The schema's version at that time. */
  readonly schema: number;
  readonly run: { readonly id: string; readonly workflow: string; readonly output: unknown };
  readonly events: readonly {
    readonly seq: number;
    readonly kind: string;
    readonly attempt: number | null;
  }[];
}

export const historiesFolder = new URL("histories/", import.meta.url);

/** Histories of this release and of earlier ones: the present code goes through each to its last fact, and calls nothing. */
export const storedHistories: Scene = {
  name: "stored-histories",
  faults: ["history replayed"],
  async act(tools) {
    await using ground = await Ground.open();
    const called: string[] = [];
    const workflows = createRecordedWorkflows((step) => {
      called.push(step);
      throw new Error(`The step ${step} was called again.`);
    });
    await ground.pawl.worker({ workflows }).start();
    for (const file of (await readdir(historiesFolder)).toSorted()) {
      const text = await readFile(new URL(file, historiesFolder), "utf8");
      await replay(ground, file, JSON.parse(text) as StoredHistory, tools);
    }
    if (called.length > 0) tools.report("I14", "replay called a step whose result is recorded", ...called);
  },
};

/** Its last fact, that it has completed, is taken from it: the code must come to the same one. */
async function replay(
  ground: Ground,
  file: string,
  { run, events }: StoredHistory,
  { landed, report }: SceneTools,
): Promise<void> {
  const kept = events.filter(({ kind }) => kind !== "completed");
  const attempt = Math.max(
    1,
    ...kept.filter(({ kind }) => kind === "attempt_failed").map((e) => (e.attempt ?? 0) + 1),
  );
  await ground.pool.query("insert into pawl.run select * from json_populate_record(null::pawl.run, $1)", [
    JSON.stringify(run),
  ]);
  await ground.pool.query(
    "insert into pawl.event select * from json_populate_recordset(null::pawl.event, $1)",
    [JSON.stringify(kept)],
  );
  await ground.pool.query(
    `insert into pawl.ready (run_id, ready_at, epoch, last_seq, attempt, priority, version, failures, crashes, suspicion, shard, told, queue, workflow)
     select id, now(), 1, $2, $3, priority, version, $3 - 1, 0, 0, shard, false, queue, workflow from pawl.run where id = $1`,
    [run.id, kept.length, attempt],
  );
  await ground.until(
    `${file} is replayed`,
    async () =>
      (await ground.value("select count(*) > 0 from pawl.endings where run_id = $1", [
        run.id,
      ])) as unknown as boolean,
    20_000,
  );
  const { rows } = await ground.pool.query<{ status: string; output: unknown; events: number }>(
    `select status, output, (select count(*)::int from pawl.event e where e.run_id = r.id) as events
       from pawl.runs r where id = $1`,
    [run.id],
  );
  const [now] = rows;
  const isSame = now?.status === "completed" && JSON.stringify(now.output) === JSON.stringify(run.output);
  if (isSame && now.events === events.length) landed("history replayed");
  else report("I14", `${file} comes to another end when it is replayed`, run.output, now);
}
