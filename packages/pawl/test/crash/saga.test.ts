import { describe, expect } from "vitest";
import { type Scene, test } from "./scene.ts";
import { Supervisor } from "./supervisor.ts";
import { saga } from "./workflows.ts";

const undone = ["undo ship", "undo charge", "undo reserve"];

/** Where the process dies, and what has been called by the end, in this order. */
const cases: readonly (readonly [diesIn: string, calls: readonly string[]])[] = [
  ["charge", ["reserve", "charge", "charge", "ship", ...undone]],
  ["ship", ["reserve", "charge", "ship", "undo ship in doubt", "undo charge", "undo reserve"]],
  ["undo charge", ["reserve", "charge", "ship", "undo ship", "undo charge", "undo charge", "undo reserve"]],
  ["undo reserve", ["reserve", "charge", "ship", ...undone, "undo reserve"]],
];

describe("a saga whose process is killed", { timeout: 90_000 }, () => {
  test("in a step or in an undo is undone to the end by another", async ({ scene }) => {
    const supervisor = scene.own(new Supervisor(scene.crew()));
    await supervisor.start(2);
    // One after the other: they would take each other's workers down.
    for (const [diesIn, calls] of cases) {
      const run = await scene.pawl.start(saga, { diesIn });
      await expect(run.result({ signal: AbortSignal.timeout(60_000) })).rejects.toMatchObject({
        code: "RUN_FAILED",
        details: { runId: run.id },
        cause: diesIn === "ship" ? { code: "STEP_CRASHED" } : { message: "no money" },
      });
      expect({ diesIn, calls: await callsOf(scene, run.id) }).toEqual({ diesIn, calls });
    }
  });
});

async function callsOf({ pool }: Scene, runId: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ step: string }>(
    "select step from public.ledger where run_id = $1 order by began_at, called_at",
    [runId],
  );
  return rows.map(({ step }) => step);
}
