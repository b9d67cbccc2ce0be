import { randomBytes } from "node:crypto";
import { describe, expect } from "vitest";
import { createPawl, workflow, type Pawl } from "../../src/index.ts";
import { schemaName } from "../../src/postgres/schema-name.ts";
import { fillTables } from "../postgres/bulk.ts";
import { readStatementStats, resetStatementStats } from "../postgres/statement-stats.ts";
import { type Scene, test } from "./scene.ts";

const strangers = 100_000;
const runs = 2_000;
const rounds = 2;
const plain = workflow({ name: "plain", version: 1 }, async (_ctx, n: number) => n);

describe("runs of workflows that nobody knows", { timeout: 60_000 }, () => {
  test(`at the head of the queue, ${strangers} of them, do not slow down the others`, async ({ scene }) => {
    const crowded = await openBeside(scene);
    await fillTables(scene.pool, schemaName(crowded.schema), {
      finished: 0,
      parked: 0,
      unclaimable: strangers,
      held: 0,
    });
    await resetStatementStats(scene.pool);
    const times = { alone: [] as number[], crowded: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      times.alone.push(await drain(scene.pawl));
      times.crowded.push(await drain(crowded.pawl));
    }
    // Pages that claims had to look at: time says little on a busy machine.
    const pages = await Promise.all(
      [scene.schema, crowded.schema].map((schema) => pagesPerClaim(scene, schema)),
    );
    const [alone, behind] = pages as [number, number];
    console.info(
      `strangers: ${runs} runs drained in ms ${JSON.stringify(times)}, behind ${strangers} others or alone;`,
      `pages per claim ${Math.round(alone)} alone, ${Math.round(behind)} behind them`,
    );
    expect(behind / alone).toBeLessThan(1.5);
  });
});

async function openBeside(scene: Scene): Promise<{ readonly schema: string; readonly pawl: Pawl }> {
  const schema = `test_${randomBytes(6).toString("hex")}`;
  const pawl = scene.own(createPawl({ url: scene.url, schema }));
  await pawl.migrate();
  return { schema, pawl };
}

async function pagesPerClaim({ pool }: Scene, schema: string): Promise<number> {
  const { calls, buffers } = await readStatementStats(pool, `"${schema}".claim_runs_v1`);
  return buffers / calls;
}

/** From the worker's start until the last result is known. */
async function drain(pawl: Pawl): Promise<number> {
  const started = await Promise.all(Array.from({ length: runs }, (_, n) => pawl.start(plain, n)));
  const results = Promise.all(started.map((run) => run.result()));
  const worker = pawl.worker({ workflows: [plain], concurrency: 200 });
  const startedAt = performance.now();
  await worker.start();
  await results;
  const ms = performance.now() - startedAt;
  await worker.stop();
  return Math.round(ms);
}
