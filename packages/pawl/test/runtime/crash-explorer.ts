import { expect } from "vitest";
import type { RunId } from "../../src/core/ids.ts";
import type { RunRecord } from "../../src/store/run-record.ts";
import { createEngine, type Engine } from "./engine.ts";

/** Drives a run from its start to its end. May tell it things on the way; must do so whatever crashes happen. */
export type Scenario = (engine: Engine) => Promise<RunId>;

export interface Ended {
  readonly engine: Engine;
  readonly run: RunRecord;
  readonly output: unknown;
  /** Without the traces of crashes. */
  readonly facts: readonly string[];
  readonly writes: number;
}

export async function endScenario(scenario: Scenario, engine = createEngine()): Promise<Ended> {
  const runId = await scenario(engine);
  const run = await engine.end(runId);
  const facts = (await engine.facts(runId)).filter((fact) => fact !== "attempt_crashed");
  return { engine, run, output: await engine.output(runId), facts, writes: engine.writes() };
}

/**
 * Kills the worker before and after every single write the scenario makes, and expects the same end and the same
 * history as without. Answers how many crashes were tried.
 */
export async function exploreCrashes(scenario: Scenario): Promise<number> {
  const undisturbed = await endScenario(scenario);
  for (let number = 1; number <= undisturbed.writes; number++) {
    for (const when of ["before", "after"] as const) {
      const crashAt = (call: number, at: string): boolean => call === number && at === when;
      const { output, run, facts } = await endScenario(scenario, createEngine({ crashAt }));
      const crash = `crash ${when} write ${number}`;
      expect([crash, run.status, output, run.error]).toEqual([
        crash,
        undisturbed.run.status,
        undisturbed.output,
        undisturbed.run.error,
      ]);
      expect([crash, ...facts]).toEqual([crash, ...undisturbed.facts]);
    }
  }
  return undisturbed.writes * 2;
}
