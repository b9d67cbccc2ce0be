import { describe, expect } from "vitest";
import { dag, settled, workflow, type NodeView, type RunHandle } from "../../src/index.ts";
import { createGate, eventually, places, replay, test } from "../model/model-test.ts";

const once = { attempts: 1 } as const;

describe.each(places)("the nodes of a run in %s", (place) => {
  /** By name; in the database, the view says the same. */
  const statesOf = async (
    run: RunHandle,
    query: (text: string, values: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>,
    schema: string,
  ): Promise<Record<string, string>> => {
    const nodes = await run.nodes();
    if (place === "postgres")
      expect((await query(viewOf(schema), [run.id])).rows.map(readRow)).toEqual(nodes);
    return Object.fromEntries(
      nodes.map(({ name, state, reason }) => [name, reason === null ? state : `${state}: ${reason}`]),
    );
  };

  test("are there from its start, and tell how they are", async ({ open, queue, pool, home }) => {
    const gates = [createGate(), createGate()];
    const slow = workflow({ name: "slow", version: 1, queue, retry: once }, async (ctx, gate: number) => {
      await ctx.step("wait", () => gates[gate]!.opened);
      if (gate === 1) throw new Error("no luck");
      return gate;
    });
    const far = workflow({ name: "far", version: 1, queue: `${queue}-nobody` }, async () => 1);
    const graph = dag({ name: "graph", version: 1, queue, onError: "continue" }, (g) => {
      const first = g.node("first/of#2", slow, 0);
      const bad = g.node("bad", slow, 1);
      const lost = g.node("lost", slow, bad);
      g.node("not wanted", slow, first, { when: () => false });
      g.node("nobody", far, undefined, { after: [first] });
      g.each("each", [0, 0], slow, () => first, { after: [settled(lost)] });
      return first;
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, slow]);
    const run = await pawl.start(graph);
    const query = pool.query.bind(pool);
    const states = (): Promise<Record<string, string>> => statesOf(run, query, home);
    await eventually(states).toEqual({
      "first/of#2": "running",
      bad: "running",
      lost: "pending",
      "not wanted": "pending",
      nobody: "pending",
      each: "pending",
    });
    gates[1]!.open();
    await eventually(states).toMatchObject({ bad: "failed: no luck", lost: 'skipped: "bad" failed' });
    gates[0]!.open();
    await eventually(states).toEqual({
      "first/of#2": "completed",
      bad: "failed: no luck",
      lost: 'skipped: "bad" failed',
      "not wanted": "skipped: its condition is not met",
      nobody: "ready",
      each: "completed",
    });
    const [first, , lost, , , each] = (await run.nodes()) as [NodeView, ...NodeView[]];
    expect(first).toMatchObject({
      workflow: "slow",
      version: 1,
      needs: [],
      least: 0,
      runs: 1,
      isEach: false,
    });
    expect(await pawl.get(first.runId!)).toMatchObject({ parentId: run.id, status: "completed" });
    expect(lost).toMatchObject({ needs: ["bad"], least: 1, runs: 0, runId: null, beganAt: null });
    expect(each).toMatchObject({ needs: ["lost", "first/of#2"], runs: 2, isEach: true });
    await run.cancel();
    await eventually(states).toMatchObject({ nobody: "failed: cancelled: parent" });
  });

  test("show what a pause holds up, and the newest run of what was begun anew", async ({
    open,
    queue,
    pool,
    home,
  }) => {
    let isBroken = true;
    const task = workflow({ name: "task", version: 1, queue, retry: once }, async (_, fails: boolean) => {
      if (fails && isBroken) throw new Error("broken");
    });
    const gate = createGate();
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) =>
      ctx.step("wait", () => gate.opened),
    );
    const graph = dag({ name: "graph", version: 1, queue, onError: "pause" }, (g) => {
      const bad = g.node("bad", task, true);
      const beside = g.node("beside", slow);
      g.node("held", task, false, { after: [beside] });
      g.node("after", task, false, { after: [bad] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task, slow]);
    const run = await pawl.start(graph);
    const query = pool.query.bind(pool);
    const states = (): Promise<Record<string, string>> => statesOf(run, query, home);
    await eventually(states).toMatchObject({ bad: "failed: broken" });
    expect(await run.status()).not.toBe("paused");
    gate.open();
    await eventually(() => run.status()).toBe("paused");
    expect(await states()).toEqual({
      bad: "failed: broken",
      beside: "completed",
      held: "ready",
      after: "pending",
    });
    const paused = (await run.history()).find(({ kind }) => kind === "paused");
    expect(paused?.data).toMatchObject({
      reason: expect.stringMatching(/^"bad" failed: .*broken/) as string,
    });
    isBroken = false;
    await run.resume();
    await run.result();
    expect(await states()).toEqual({
      bad: "completed",
      beside: "completed",
      held: "completed",
      after: "completed",
    });
    expect((await run.nodes())[0]).toMatchObject({ runs: 2 });
  });

  test("that fail before they have a run are seen, and so are those that an end leaves behind", async ({
    open,
    queue,
    pool,
    home,
  }) => {
    const task = workflow({ name: "task", version: 1, queue, retry: once }, async () => {});
    const graph = dag({ name: "graph", version: 1, queue }, (g) => {
      const bad = g.node("bad", task, undefined, {
        when: () => {
          throw new Error("no condition");
        },
      });
      g.node("never", task, undefined, { after: [bad] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    expect(await statesOf(run, pool.query.bind(pool), home)).toEqual({
      bad: "failed: no condition",
      never: "skipped: the run has ended",
    });
  });

  test("with a child for each item tell by the newest of each item how they are", async ({
    open,
    queue,
    pool,
    home,
  }) => {
    let isBroken = true;
    const task = workflow({ name: "task", version: 1, queue, retry: once }, async (_, fails: boolean) => {
      if (fails && isBroken) throw new Error("broken");
    });
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const graph = dag({ name: "graph", version: 1, queue, onError: "continue" }, (g) => {
      const bad = g.each("bad", [false, true, false], task, (fails) => fails, { concurrency: 2 });
      const lost = g.each("lost", [false], task, (fails) => fails, { after: [bad] });
      g.node("last", slow, undefined, { after: [lost] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task, slow]);
    const run = await pawl.start(graph);
    const query = pool.query.bind(pool);
    const states = (): Promise<Record<string, string>> => statesOf(run, query, home);
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    expect(await states()).toEqual({
      bad: "failed: broken",
      lost: 'skipped: "bad" failed',
      last: 'skipped: "lost" was skipped',
    });
    isBroken = false;
    await run.retry();
    await eventually(states).toEqual({ bad: "completed", lost: "completed", last: "running" });
    const last = (await run.nodes())[2]!.runId!;
    await pawl.signal(last, "go", null);
    await run.result();
    expect(await states()).toEqual({ bad: "completed", lost: "completed", last: "completed" });
  });

  test("that an end interrupts are over with it", async ({ open, queue, pool, home }) => {
    const gate = createGate();
    const task = workflow({ name: "task", version: 1, queue, retry: once }, async (ctx, kind: string) => {
      if (kind === "bad") {
        await ctx.step("wait", () => gate.opened);
        throw new Error("broken");
      }
      if (kind === "slow") await ctx.waitForSignal("go");
    });
    const graph = dag({ name: "graph", version: 1, queue }, (g) => {
      g.node("bad", task, "bad");
      g.each("each", ["good", "slow"], task, (kind) => kind);
      g.each("none", ["good"], task, (kind) => kind, { after: [g.node("slow", task, "slow")] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    const states = (): Promise<Record<string, string>> => statesOf(run, pool.query.bind(pool), home);
    await eventually(states).toMatchObject({ each: "running", slow: "running", none: "pending" });
    gate.open();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    await eventually(states).toEqual({
      bad: "failed: broken",
      each: "failed: cancelled: parent",
      slow: "failed: cancelled: parent",
      none: "skipped: the run has ended",
    });
  });

  test("that a pause held up are skipped where the run ends in it", async ({ open, queue, pool, home }) => {
    const gate = createGate();
    const task = workflow({ name: "task", version: 1, queue, retry: once }, async (ctx, isBad: boolean) => {
      if (isBad) throw new Error("broken");
      await ctx.step("wait", () => gate.opened);
    });
    const graph = dag({ name: "graph", version: 1, queue, onError: "pause" }, (g) => {
      g.node("bad", task, true);
      const beside = g.node("beside", task, false);
      g.node("held", task, false, { after: [beside] });
      g.each("items", [false], task, (isBad) => isBad, { after: [beside] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    const states = (): Promise<Record<string, string>> => statesOf(run, pool.query.bind(pool), home);
    await eventually(states).toMatchObject({ bad: "failed: broken" });
    gate.open();
    await eventually(() => run.status()).toBe("paused");
    expect(await states()).toMatchObject({ held: "ready", items: "ready" });
    await run.cancel();
    await eventually(states).toEqual({
      bad: "failed: broken",
      beside: "completed",
      held: "skipped: the run has ended",
      items: "skipped: the run has ended",
    });
  });

  test("are none in a run of another workflow", async ({ open, queue }) => {
    const child = workflow({ name: "child", version: 1, queue }, async () => {});
    const job = workflow({ name: "job", version: 1, queue }, async (ctx) =>
      ctx.scope("a", (inner) => inner.call(child)),
    );
    const pawl = open(place);
    await replay(pawl, queue, [job, child]);
    const run = await pawl.start(job);
    await run.result();
    expect(await run.nodes()).toEqual([]);
  });

  test("are none in a run of another workflow that publishes something of its own as its graph", async ({
    open,
    queue,
    pool,
    home,
  }) => {
    const values = [{}, [{ a: 1 }], [{ name: "a", version: "x" }], [1], "text", null, { nodes: {} }];
    const job = workflow({ name: "job", version: 1, queue }, async (ctx, value: unknown) => {
      await ctx.publish("graph", value);
      await ctx.publish("graph:2", value);
      await ctx.publish("graph:99999999999", value);
    });
    const pawl = open(place);
    await replay(pawl, queue, [job]);
    for (const value of values) {
      const run = await pawl.start(job, value);
      await run.result();
      expect(await statesOf(run, pool.query.bind(pool), home)).toEqual({});
    }
  });
});

function viewOf(schema: string): string {
  return `select name, state, reason, workflow, version, needs, at_least, is_each, is_optional, child_id, runs,
                 date_trunc('milliseconds', began_at) as began_at, date_trunc('milliseconds', ended_at) as ended_at
            from ${schema}.nodes where run_id = $1 order by place`;
}

function readRow(row: Record<string, unknown>): unknown {
  const { at_least, is_each, is_optional, child_id, began_at, ended_at, ...same } = row;
  return {
    ...same,
    least: at_least,
    isEach: is_each,
    isOptional: is_optional,
    runId: child_id,
    beganAt: began_at,
    endedAt: ended_at,
  };
}
