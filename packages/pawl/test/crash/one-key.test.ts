import { describe, expect } from "vitest";
import { expectOrder } from "./invariants.ts";
import { test } from "./scene.ts";
import { chain } from "./workflows.ts";

describe("one key", { timeout: 60_000 }, () => {
  test("is one run for a thousand callers in three processes at once", async ({ scene }) => {
    const { pool, schema, pawl } = scene;
    const crew = scene.crew({ lease: "15s" });
    const [, ...callers] = await Promise.all([crew.hire(), crew.next(), crew.next(), crew.next()]);

    for (const key of ["first", "second"]) {
      const answers = callers.map((caller) => caller.hear("started"));
      for (const [index, caller] of callers.entries())
        caller.tell({ kind: "start", key, times: index === 0 ? 334 : 333 });
      const runIds = (await Promise.all(answers)).flatMap((answer) => answer.runIds);
      expect(runIds).toHaveLength(1_000);
      expect(new Set(runIds).size).toBe(1);
      const [runId] = runIds;
      expect(await pawl.handle(runId!, chain).result()).toEqual([1, 2]);
      const { rows } = await pool.query("select step from public.ledger where run_id = $1 order by step", [
        runId,
      ]);
      expect(rows).toEqual([{ step: "link-1" }, { step: "link-2" }]);
    }
    const { rows } = await pool.query(`select count(*)::int as runs from ${schema}.run`);
    expect(rows).toEqual([{ runs: 2 }]);
    await expectOrder(scene);
  });
});
