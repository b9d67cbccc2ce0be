import { describe, expect } from "vitest";
import { findBroken } from "./invariants.ts";
import { outputsOf } from "./outputs-of.ts";
import { type Scene, test } from "./scene.ts";
import { Supervisor } from "./supervisor.ts";
import { poison, startChains, type Death } from "./workflows.ts";

const neighbours = 50;
const workers = 3;

describe("runs that kill their process", { timeout: 120_000 }, () => {
  const kinds: readonly (readonly Death[])[] = [["exit"], ["kill", "kill", "kill", "abort", "exit"]];
  for (const deaths of kinds) {
    test(`fail, ${deaths.length} among ${neighbours} others, and take none of these with them`, async ({
      scene,
    }) => {
      const supervisor = scene.own(new Supervisor(scene.crew()));
      await supervisor.start(workers);
      const startedAt = performance.now();
      const elapsedMs = (): number => Math.round(performance.now() - startedAt);

      const before = await startChains(scene.pawl, neighbours / 2, { steps: 4, stepMs: 100 });
      const poisons = await Promise.all(deaths.map((death) => scene.pawl.start(poison, { death })));
      const after = await startChains(scene.pawl, neighbours / 2, { steps: 4, stepMs: 100 });
      const good = [...before, ...after];
      const failing = poisons.map((run) =>
        run.result({ signal: AbortSignal.timeout(100_000) }).then(
          () => "completed",
          (error: unknown) => error,
        ),
      );

      expect(await outputsOf(scene, good, 90_000)).toEqual(good.map(() => [1, 2, 3, 4]));
      const goodMs = elapsedMs();
      for (const error of await Promise.all(failing)) {
        expect(error).toMatchObject({ code: "RUN_FAILED", cause: { code: "WORKER_CRASHED" } });
      }
      const poisonMs = elapsedMs();

      const { "a run has not ended as it should": failed, ...broken } = await findBroken(scene);
      expect(broken).toEqual({});
      expect(failed?.map((row) => (row as { id: string }).id).toSorted()).toEqual(
        poisons.map(({ id }) => id).toSorted(),
      );
      const crashes = await crashesOf(
        scene,
        poisons.map(({ id }) => id),
      );
      console.info(
        `poison: ${deaths.length} of ${neighbours + deaths.length} runs, ${supervisor.ends} processes ended,`,
        `neighbours done after ${goodMs} ms, poison failed after ${poisonMs} ms, crashes ${JSON.stringify(crashes)}`,
      );
      // Alone five times, and before that twice in company at most.
      for (const { alone, inCompany } of crashes) {
        expect(alone).toBe(5);
        expect(inCompany).toBeLessThanOrEqual(2);
      }
    });
  }
});

/** How often each of these took its worker with it: alone in it, or among others. */
async function crashesOf(
  { pool, schema }: Scene,
  runIds: readonly string[],
): Promise<readonly { readonly alone: number; readonly inCompany: number }[]> {
  const { rows } = await pool.query<{ alone: number; inCompany: number }>(
    `select count(*) filter (where (data ->> 'alone')::boolean)::int as alone,
            count(*) filter (where not (data ->> 'alone')::boolean)::int as "inCompany"
       from ${schema}.event
      where kind = 'attempt_crashed' and run_id = any ($1)
      group by run_id`,
    [runIds],
  );
  return rows;
}
