import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import type { Pawl, RunHandle, RunId, StreamItem } from "../../src/index.ts";
import { eventually } from "./eventually.ts";
import { everything, everythingOutput, everythingTold, turns } from "./everything.ts";
import { untilAnswered } from "./orders.ts";
import type { Scene } from "./scene.ts";

/** Starts a run of everything on a queue, and deals with it as its users would. Resolves when it has told all it should. */
export async function useEverything(pawl: Pawl, queue: string, key = queue): Promise<RunHandle> {
  const run = await untilAnswered(() =>
    pawl.start(everything, { queue, turn: 1, done: [] }, { queue, key: `everything:${key}` }),
  );
  const send = (name: string, word: string): Promise<void> =>
    untilAnswered(() => run.signal(name, word, { idempotencyKey: word }));
  const add = (n: number): Promise<unknown> =>
    untilAnswered(() => run.update("add", n, { idempotencyKey: `add ${n}` }));
  const ask = (n: number): Promise<unknown> => {
    const sum = add(n);
    // What goes wrong is told when it is awaited.
    sum.catch(() => {});
    return sum;
  };

  const sums = [ask(1)];
  // Before anybody waits for them, one of them twice; those for later turns move on with the run.
  for (let turn = 1; turn <= turns; turn++) await send("early", `early ${turn}`);
  await send("early", "early 1");
  while ((await untilAnswered(() => run.published("stage"))) !== "waits in turn 1") await pause(50);
  expect(await sums[0]).toBe(101);
  await send("late", "late 1");
  sums.push(ask(2));
  for (let turn = 2; turn < turns; turn++) await send("late", `late ${turn}`);
  // The last turn does not end before this is answered, by whichever turn.
  expect(await Promise.all(sums)).toEqual([101, 102]);
  await send("late", `late ${turns}`);
  expect(await untilAnswered(() => run.result())).toEqual(everythingOutput);
  expect(await add(2)).toBe(102);
  await expectTales(pawl, run.id);
  return run;
}

/** Every turn's stream reads the same, whatever came to nothing on the way. */
async function expectTales(pawl: Pawl, firstId: RunId): Promise<void> {
  let told = 0;
  for (let id: RunId | null = firstId; id !== null; told++) {
    const runId: RunId = id;
    expect(await untilAnswered(() => readTale(pawl, runId))).toEqual(everythingTold);
    id = (await untilAnswered(() => pawl.get(runId)))?.continuedAs ?? null;
  }
  expect(told).toBe(turns);
}

async function readTale(pawl: Pawl, runId: RunId): Promise<readonly string[]> {
  let items: StreamItem<string>[] = [];
  for await (const item of pawl.stream<string>(runId, "tale")) {
    if (item.isFirst) items = items.filter(({ step }) => step !== item.step);
    items.push(item);
  }
  return items.map(({ value }) => value);
}

/** Resolves when every run on this queue has ended: children that were cancelled may need a moment more than their parent. */
export async function allEnded({ pool, schema }: Scene, queue: string): Promise<void> {
  await eventually(async () => {
    const { rowCount } = await pool.query(`select 1 from ${schema}.live_runs where queue = $1 limit 1`, [
      queue,
    ]);
    return rowCount;
  }).toBe(0);
}
