import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { RunHandle } from "../../src/index.ts";
import { Fleet } from "./fleet.ts";
import { expectOrder } from "./invariants.ts";
import { outputsOf } from "./outputs-of.ts";
import { type Scene, test } from "./scene.ts";
import { tally } from "./workflows.ts";

const chains = 6;
const turns = 30;
const signalsPerTurn = 4;
const signals = turns * signalsPerTurn;

describe("a run that goes on as another while workers are killed", { timeout: 120_000 }, () => {
  test("counts every signal to the first of its chain once, in order", async ({ scene }) => {
    const fleet = new Fleet(scene);
    await fleet.start();
    const input = { turnsLeft: turns - 1, signals: signalsPerTurn, counted: [] };
    const runs = await Promise.all(Array.from({ length: chains }, () => scene.pawl.start(tally, input)));

    const sent = Promise.all(runs.map((run) => sendAll(scene, run))).then(() => "sent" as const);
    let kills = 0;
    while ((await Promise.race([sent, pause(300 + scene.random.next() * 500)])) !== "sent")
      if ((await fleet.kill()) !== null) kills += 1;
    const outputs = await outputsOf(scene, runs);
    await fleet.isComplete();

    const all = Array.from({ length: signals }, (_, index) => index + 1);
    expect(outputs).toEqual(runs.map(() => all));
    for (const run of runs) expect(await chainLength(scene, run.id)).toBe(turns);
    await expectOrder(scene);
    console.info(
      `continuing: seed ${scene.seed}, ${kills} effective kills, ${chains} chains of ${turns} runs, ${chains * signals} signals, each once`,
    );
    expect(kills).toBeGreaterThan(3);
  });
});

/** One after the other, and some of them twice. */
async function sendAll({ random }: Scene, run: RunHandle): Promise<void> {
  for (let n = 1; n <= signals; n++) {
    const times = random.next() < 0.2 ? 2 : 1;
    for (let time = 0; time < times; time++) await run.signal("count", n, { idempotencyKey: `count ${n}` });
    await pause(random.next() * 200);
  }
}

async function chainLength({ pool, schema }: Scene, firstId: string): Promise<number> {
  const { rows } = await pool.query<{ runs: number }>(
    `select count(*)::int as runs from ${schema}.run where coalesce(first_id, id) = $1`,
    [firstId],
  );
  return rows[0]!.runs;
}
