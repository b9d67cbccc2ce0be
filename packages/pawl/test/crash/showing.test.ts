import { describe, expect } from "vitest";
import type { RunHandle, StreamItem } from "../../src/index.ts";
import { eventually } from "./eventually.ts";
import { test } from "./scene.ts";
import { narrator } from "./workflows.ts";

const words = 12;
const told = ["begin", ...Array.from({ length: words }, (_, index) => `word ${index + 1}`), "end"];

/** Reads as a browser does: what an attempt that came to nothing wrote is dropped when the next one begins. */
async function readTale(
  run: RunHandle,
): Promise<{ readonly tale: readonly string[]; readonly seen: number[] }> {
  const seen: number[] = [];
  let items: StreamItem<string>[] = [];
  for await (const item of run.stream<string>("tale")) {
    seen.push(item.position);
    if (item.isFirst) items = items.filter(({ step }) => step !== item.step);
    items.push(item);
  }
  return { tale: items.map(({ value }) => value), seen };
}

describe("what runs show and answer while workers are killed", { timeout: 120_000 }, () => {
  test("is told whole, once and in order, and every update is answered", async ({ scene }) => {
    const crew = scene.crew({ lease: 1_000 });
    crew.prepare(3);
    const workers = [await crew.hire(), await crew.hire()];
    const runs = await Promise.all(
      Array.from({ length: 6 }, () => scene.pawl.start(narrator, { steps: words, stepMs: 60 })),
    );
    const tales = runs.map((run) => readTale(run));
    const answers = runs.flatMap((run) => [1, 2, 3].map((n) => run.update("double", n)));
    for (let kills = 0; kills < 2; kills++) {
      await eventually(async () => {
        const { rows } = await scene.pool.query<{ count: number }>(
          `select count(*)::int as count from ${scene.schema}.stream where step is not null`,
        );
        return rows[0]!.count;
      }).toBeGreaterThan(6 + 20 * kills);
      await workers.shift()!.kill();
      workers.push(await crew.hire());
    }
    for (const { tale, seen } of await Promise.all(tales)) {
      expect(tale).toEqual(told);
      expect(seen).toEqual(seen.map((_, index) => index + 1));
    }
    expect(await Promise.all(answers)).toEqual(runs.flatMap(() => [2, 4, 6]));
    for (const run of runs) {
      await eventually(() => run.published("stage")).toBe("told");
      await run.signal("stop");
      expect(new Set(await run.result())).toEqual(new Set([1, 2, 3]));
    }
  });
});
