import { checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import type { Scene, SceneTools } from "../scenes/scene.ts";
import { Shift } from "../scenes/shift.ts";
import { chain, poison } from "../scenes/workflows.ts";

async function poisonAmongOthers(
  tools: SceneTools,
  death: "exit" | "memory",
  poisons: number,
  nodeOptions: readonly string[],
): Promise<void> {
  const { landed, figure, report } = tools;
  await using ground = await Ground.open();
  await using shift = new Shift(ground, 3, { nodeOptions });
  const startedAt = performance.now();
  await ground.pawl.startMany(
    poison,
    Array.from({ length: poisons }, () => ({ input: { death } })),
  );
  await ground.pawl.startMany(
    chain,
    Array.from({ length: 100 }, () => ({ input: { steps: 4, stepMs: 20 } })),
  );
  await ground.until(
    "the others have ended",
    async () => (await ground.countRuns("workflow = 'chain' and status = 'completed'")) === 100,
    120_000,
  );
  const othersMs = Math.round(performance.now() - startedAt);
  await ground.drain(poisons * 10_000 + 60_000);
  const { rows } = await ground.pool.query(
    "select id, status, error_code from pawl.runs where workflow = 'poison' and (status <> 'failed' or error_code <> 'WORKER_CRASHED')",
  );
  if (rows.length > 0)
    report("I16", "a run that kills its process has not failed for that", ...rows.slice(0, 3));
  const { rows: spent } = await ground.pool.query<{ run_id: string; crashes: number }>(
    `select run_id, count(*)::int as crashes from pawl.event
      where kind = 'attempt_crashed' and run_id in (select id from pawl.run where workflow = 'poison')
      group by 1 having count(*) > 4`,
  );
  if (spent.length > 0)
    report("I16", "a poison was tried more often than its limit says", ...spent.slice(0, 3));
  await checkGround(ground, report);
  landed(`process ended by a run (${death})`, shift.ends);
  figure(
    `${poisons} poisons, ${shift.ends} processes ended; 100 others done in ${othersMs} ms, the last poison failed after ${Math.round(performance.now() - startedAt)} ms`,
  );
}

export const poisonRuns: Scene = {
  name: "poison",
  faults: ["process ended by a run (exit)"],
  act: (tools) => poisonAmongOthers(tools, "exit", tools.isLong ? 1_000 : 8, []),
};

/** A step takes all the memory that its process may have. */
export const outOfMemory: Scene = {
  name: "out-of-memory",
  faults: ["process ended by a run (memory)"],
  act: (tools) => poisonAmongOthers(tools, "memory", tools.isLong ? 50 : 1, ["--max-old-space-size=96"]),
};
