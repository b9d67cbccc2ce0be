import { describe, expect } from "vitest";
import { z } from "zod";
import {
  dag,
  PawlError,
  quorum,
  settled,
  workflow,
  type Graph,
  type Node,
  type RunHandle,
  type Settled,
  type Workflow,
} from "../../src/index.ts";
import { createGate, eventually, factsOf, places, replay, test, upTo } from "../model/model-test.ts";

const once = { attempts: 1 } as const;

/** What a task is told to do, and what it was given beside that. */
interface Order {
  readonly name: string;
  readonly given?: unknown;
}

/** A task that notes that it runs, and fails for as long as it is told to. */
function createTask(queue: string) {
  const ran: string[] = [];
  const failing = new Set<string>();
  const task: Workflow<Order, string> = workflow(
    { name: "task", version: 1, queue, retry: once },
    async (_, { name }: Order) => {
      ran.push(name);
      if (failing.has(name)) throw new Error(`${name} is broken`);
      return `${name} done`;
    },
  );
  return { ran, failing, task };
}

async function failureOf(run: RunHandle): Promise<PawlError> {
  const error: unknown = await run.result().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(PawlError.is(error, "RUN_FAILED")).toBe(true);
  return (error as Error).cause as PawlError;
}

describe.each(places)("a graph in %s", (place) => {
  test("gives each node what it refers to, and its run what it returns", async ({ open, queue }) => {
    const add = workflow({ name: "add", version: 1, queue }, async (_, terms: readonly number[]) =>
      terms.reduce((a, b) => a + b, 0),
    );
    const tell = workflow({ name: "tell", version: 1, queue }, async (_, input: unknown) =>
      JSON.stringify(input),
    );
    const sums = dag(
      { name: "sums", version: 1, queue },
      (g: Graph<{ readonly first: number; readonly deep: { readonly list: readonly number[] } }>) => {
        const one = g.node("one", add, [g.input.first, 1]);
        const two = g.node("two", add, [one, one, 10]);
        const all = g.node("all", add, g.input.deep.list);
        return g.node("told", tell, { one, nested: { list: [two, "text", null] }, all, how: settled(one) });
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [sums, add, tell]);
    const run = await pawl.start(sums, { first: 1, deep: { list: [1, 2, 3] } });
    expect(JSON.parse(await run.result())).toEqual({
      one: 2,
      nested: { list: [14, "text", null] },
      all: 6,
      how: { status: "completed", value: 2 },
    });
    expect(await factsOf(run, "child_started")).toEqual(["one/add", "all/add", "two/add", "told/tell"]);
  });

  test("runs every node once, and after those that it needs, however often it is replayed", async ({
    open,
    queue,
  }) => {
    const { ran, task } = createTask(queue);
    const diamond = dag({ name: "diamond", version: 1, queue }, (g) => {
      const top = g.node("top", task, { name: "top" });
      const sides = ["left", "right"].map((name) => g.node(name, task, { name, given: top }));
      const bottom = g.node("bottom", task, { name: "bottom", given: sides });
      return g.node("last", task, { name: "last" }, { after: [bottom] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [diamond, task]);
    expect(await (await pawl.start(diamond)).result()).toBe("last done");
    expect([ran[0], ran.slice(1, 3).toSorted(), ...ran.slice(3)]).toEqual([
      "top",
      ["left", "right"],
      "bottom",
      "last",
    ]);
  });

  test("begins a node only once the results that it needs are recorded", async ({ open, queue }) => {
    const { task } = createTask(queue);
    const chain = dag({ name: "chain", version: 1, queue }, (g) => {
      let last: Node<string> = g.node("n0", task, { name: "n0" });
      for (const number of upTo(5)) last = g.node(`n${number + 1}`, task, { name: "n", given: last });
      return last as Node<string, false>;
    });
    const pawl = open(place);
    await replay(pawl, queue, [chain, task]);
    const run = await pawl.start(chain);
    await run.result();
    const facts = (await run.history()).filter(({ kind }) => kind.startsWith("child_"));
    expect(facts.map(({ kind, name }) => `${kind} ${name}`)).toEqual(
      upTo(6).flatMap((number) => [`child_started n${number}/task`, `child_ended n${number}/task`]),
    );
  });

  test("that fails names the nodes that did, skips nothing it need not, and cancels what runs", async ({
    open,
    queue,
  }) => {
    const { ran, failing, task } = createTask(queue);
    const sleeper = workflow({ name: "sleeper", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const graph = dag({ name: "graph", version: 1, queue }, (g) => {
      const bad = g.node("bad", task, { name: "bad" });
      g.node("slow", sleeper);
      return g.node("after", task, { name: "after", given: bad });
    });
    failing.add("bad");
    const pawl = open(place);
    await replay(pawl, queue, [graph, task, sleeper]);
    const run = await pawl.start(graph);
    const cause = await failureOf(run);
    expect(cause).toMatchObject({ code: "NODE_FAILED", cause: { code: "RUN_FAILED" } });
    expect(cause.message).toMatch(/^The graph has failed: "bad" failed: .*bad is broken\.$/);
    expect(ran).toEqual(["bad"]);
    await eventually(async () => (await pawl.list({ queue, workflow: "sleeper" })).runs[0]?.status).toBe(
      "cancelled",
    );
    failing.clear();
    await run.retry();
    await eventually(() => ran).toEqual(["bad", "bad", "after"]);
    await run.cancel();
  });

  test("goes on after a failure with `continue`, and then fails", async ({ open, queue }) => {
    const { ran, failing, task } = createTask(queue);
    const graph = dag({ name: "graph", version: 1, queue, onError: "continue" }, (g) => {
      const bad = g.node("bad", task, { name: "bad" });
      const good = g.node("good", task, { name: "good" });
      g.node("lost", task, { name: "lost", given: bad });
      return g.node("won", task, { name: "won", given: good });
    });
    failing.add("bad");
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    expect(await failureOf(run)).toMatchObject({ code: "NODE_FAILED" });
    expect(ran.toSorted()).toEqual(["bad", "good", "won"]);
    expect(await run.published("node:lost")).toEqual({ state: "skipped", reason: '"bad" failed' });
    failing.clear();
    await run.retry();
    expect(await run.result()).toBe("won done");
    expect(ran.slice(3)).toEqual(["bad", "lost"]);
  });

  test("hands a failure to who takes it settled, and does not mind it", async ({ open, queue }) => {
    const { failing, task } = createTask(queue);
    const judge = workflow(
      { name: "judge", version: 1, queue },
      async (_, ends: readonly Settled<string>[]) =>
        ends.map((end) => (end.status === "failed" ? end.error.message : end.status)),
    );
    const graph = dag({ name: "graph", version: 1, queue }, (g) => {
      const bad = g.node("bad", task, { name: "bad" });
      const good = g.node("good", task, { name: "good" });
      const skipped = g.node("skipped", task, { name: "skipped" }, { when: () => false });
      return g.node("judge", judge, [settled(bad), settled(good), settled(skipped)]);
    });
    failing.add("bad");
    const pawl = open(place);
    await replay(pawl, queue, [graph, task, judge]);
    expect(await (await pawl.start(graph)).result()).toEqual([
      expect.stringContaining("bad is broken"),
      "completed",
      "skipped",
    ]);
  });

  test("decides joins early, and skips what cannot begin any more", async ({ open, queue }) => {
    const { ran, failing, task } = createTask(queue);
    const gate = createGate();
    const slow = workflow({ name: "slow", version: 1, queue }, async (ctx) =>
      ctx.step("wait", () => gate.opened),
    );
    const graph = dag({ name: "graph", version: 1, queue, onError: "continue" }, (g) => {
      const late = g.node("late", slow);
      const good = g.node("good", task, { name: "good" });
      const bad = g.node("bad", task, { name: "bad" }, { optional: true });
      const worse = g.node("worse", task, { name: "worse" }, { optional: true });
      g.node("any", task, { name: "any", given: [late, good, bad] }, { join: "any" });
      g.node("two", task, { name: "two", given: [late, good, bad] }, { join: quorum(2) });
      g.node("none", task, { name: "none", given: [bad, worse] }, { join: "any" });
      g.node("few", task, { name: "few", given: [late, bad, worse] }, { join: quorum(2) });
      return { good, none: settled(good) };
    });
    failing.add("bad").add("worse");
    const pawl = open(place);
    await replay(pawl, queue, [graph, task, slow]);
    const run = await pawl.start(graph);
    await eventually(() => ran.toSorted()).toEqual(["any", "bad", "good", "worse"]);
    await eventually(() => run.published("node:none")).toEqual({
      state: "skipped",
      reason: '"bad" failed, "worse" failed; it needs 1 of 2',
    });
    await eventually(() => run.published("node:few")).toMatchObject({ state: "skipped" });
    gate.open();
    await run.result();
    expect(ran.at(-1)).toBe("two");
  });

  test("runs a task for each item of a list, some at a time", async ({ open, queue }) => {
    let running = 0;
    let most = 0;
    const square = workflow(
      { name: "square", version: 1, queue },
      async (ctx, { n, by }: { n: number; by: number }) =>
        ctx.step("work", async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setTimeout(resolve, 2));
          running -= 1;
          return n * by;
        }),
    );
    const list = workflow({ name: "list", version: 1, queue }, async (_, length: number) => upTo(length));
    const graph = dag(
      { name: "graph", version: 1, queue },
      (g: Graph<{ readonly own: readonly number[] }>) => {
        const by = g.node("by", list, 3);
        const known = g.each("known", [1, 2, 3], square, (n) => ({ n, by: 2 }), { concurrency: 2 });
        const fromInput = g.each("own", g.input.own, square, (n) => ({ n, by: 3 }), { concurrency: 2 });
        const fromNode = g.each("made", by, square, (n) => ({ n, by: n }), {
          concurrency: 2,
          after: [known],
        });
        const empty = g.each("empty", [] as number[], square, (n) => ({ n, by: 1 }));
        return { known, fromInput, fromNode, empty };
      },
    );
    const pawl = open(place);
    await replay(pawl, queue, [graph, square, list]);
    const run = await pawl.start(graph, { own: [5, 6] });
    expect(await run.result()).toEqual({
      known: [2, 4, 6],
      fromInput: [15, 18],
      fromNode: [0, 1, 4],
      empty: [],
    });
    expect(most).toBeLessThanOrEqual(4);
  });

  test("keeps the items that completed when those that failed are tried again", async ({ open, queue }) => {
    const { ran, failing, task } = createTask(queue);
    const graph = dag({ name: "graph", version: 1, queue }, (g) =>
      g.each("items", ["a", "b", "c", "d"], task, (name) => ({ name }), { concurrency: 3 }),
    );
    failing.add("a").add("c");
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    expect(await failureOf(run)).toMatchObject({ code: "NODE_FAILED" });
    expect((await run.nodes())[0]).toMatchObject({ state: "failed", isEach: true });
    failing.clear();
    await run.retry();
    expect(await run.result()).toEqual(["a done", "b done", "c done", "d done"]);
    expect(ran.toSorted()).toEqual(["a", "a", "b", "c", "c", "d"]);
  });

  test("pauses after a failure, and goes on with what failed when it is resumed", async ({ open, queue }) => {
    const { ran, failing, task } = createTask(queue);
    const graph = dag({ name: "graph", version: 1, queue, onError: "pause" }, (g) => {
      const good = g.node("good", task, { name: "good" });
      const bad = g.node("bad", task, { name: "bad", given: good });
      const items = g.each("items", ["a", "b", "c"], task, (name) => ({ name, given: good }), {
        concurrency: 2,
      });
      const beside = g.node("beside", task, { name: "beside", given: good });
      const next = g.node("next", task, { name: "next", given: beside });
      return g.node("end", task, { name: "end", given: [bad, items, next] });
    });
    failing.add("bad").add("b");
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    await eventually(() => run.status()).toBe("paused");
    expect(ran.toSorted()).toEqual(expect.arrayContaining(["a", "b", "bad", "beside", "good"]));
    expect(ran).not.toContain("end");
    const before = ran.length;
    failing.delete("b");
    await run.resume();
    await eventually(() => ran.slice(before).filter((name) => name === "bad")).toEqual(["bad"]);
    await eventually(() => run.status()).toBe("paused");
    failing.clear();
    await run.resume();
    expect(await run.result()).toBe("end done");
    const counts = Object.fromEntries(
      ran.map((name) => [name, ran.filter((other) => other === name).length]),
    );
    expect(counts).toEqual({ good: 1, bad: 3, a: 1, b: 2, c: 1, beside: 1, next: 1, end: 1 });
  });

  test("is not decided by what a failure says, however odd that is", async ({ open, queue }) => {
    const messages = upTo(4).map((length) => `${"x".repeat(980 + length)}${"🎉".repeat(20)}`);
    const shout = workflow({ name: "shout", version: 1, queue, retry: once }, async (_, message: string) => {
      throw new Error(message);
    });
    const odd = ["a\0b", "half \uD83C", "\uDF89", ...messages];
    const throwing = (message: string) => () => {
      throw new Error(message);
    };
    const tolerant = dag({ name: "tolerant", version: 1, queue }, (g) => {
      g.each("all", messages, shout, (message) => message, { optional: true });
      for (const [index, message] of odd.entries())
        g.node(`n${index}`, shout, "", { optional: true, when: throwing(message) });
    });
    const pausing = dag({ name: "pausing", version: 1, queue, onError: "pause" }, (g) => {
      g.each("all", messages, shout, (message) => message);
      for (const [index, message] of odd.entries())
        g.node(`n${index}`, shout, "", { when: throwing(message) });
    });
    const pawl = open(place);
    await replay(pawl, queue, [tolerant, pausing, shout]);
    await (await pawl.start(tolerant)).result();
    const run = await pawl.start(pausing);
    await eventually(() => run.status()).toBe("paused");
    await run.cancel();
  });

  test("succeeds by the first case that is satisfied", async ({ open, queue }) => {
    const { failing, task } = createTask(queue);
    const graph = dag({ name: "graph", version: 1, queue }, (g) => {
      const primary = g.node("primary", task, { name: "primary" });
      const spare = g.node("spare", task, { name: "spare" }, { after: [settled(primary)] });
      const extra = g.node("extra", task, { name: "extra" });
      g.success({ required: [primary] }, { required: [spare], optional: [primary] });
      return [settled(primary), settled(spare), settled(extra)];
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const statuses = async (...broken: readonly string[]): Promise<readonly string[]> => {
      failing.clear();
      for (const name of broken) failing.add(name);
      return (await (await pawl.start(graph)).result()).map(({ status }) => status);
    };
    expect(await statuses()).toEqual(["completed", "completed", "completed"]);
    expect(await statuses("extra", "spare")).toEqual(["completed", "failed", "failed"]);
    expect(await statuses("primary")).toEqual(["failed", "completed", "completed"]);
    await expect(statuses("primary", "extra")).rejects.toMatchObject({ cause: { code: "NODE_FAILED" } });
    await expect(statuses("primary", "spare")).rejects.toMatchObject({ cause: { code: "NODE_FAILED" } });
  });

  test("is a task of another graph, and is cancelled with it", async ({ open, queue }) => {
    const waiter = workflow({ name: "waiter", version: 1, queue }, async (ctx) => ctx.waitForSignal("go"));
    const { ran, task } = createTask(queue);
    const inner = dag({ name: "inner", version: 1, queue }, (g) => {
      const waited = g.node("waiter", waiter);
      return g.node("never", task, { name: "never" }, { after: [waited] });
    });
    const outer = dag({ name: "outer", version: 1, queue, onError: "pause" }, (g) => g.node("inner", inner));
    const pawl = open(place);
    await replay(pawl, queue, [inner, outer, waiter, task]);
    const run = await pawl.start(outer);
    const statusOf = async (name: string) => (await pawl.list({ queue, workflow: name })).runs[0]?.status;
    await eventually(() => statusOf("waiter")).toBe("waiting");
    await run.cancel();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await eventually(() => statusOf("inner")).toBe("cancelled");
    await eventually(() => statusOf("waiter")).toBe("cancelled");
    expect(ran).toEqual([]);
  });

  test("fails without the result that it returns, and ends without one by choice", async ({
    open,
    queue,
  }) => {
    const { failing, task } = createTask(queue);
    const graph = dag({ name: "graph", version: 1, queue }, (g: Graph<{ readonly isWanted: boolean }>) => {
      const bad = g.node("bad", task, { name: "bad" }, { optional: true });
      const choice = g.node(
        "choice",
        task,
        { name: "choice", given: g.input.isWanted },
        { when: ({ given }) => given === true },
      );
      return g.node("result", task, { name: "result", given: choice }, { after: [bad] });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    expect(await (await pawl.start(graph, { isWanted: true })).result()).toBe("result done");
    expect(await (await pawl.start(graph, { isWanted: false })).result()).toBeUndefined();
    failing.add("bad");
    const run = await pawl.start(graph, { isWanted: true });
    expect((await failureOf(run)).message).toBe(
      'The graph has failed: "result", whose result is wanted, was skipped: "bad" failed.',
    );
  });

  test("fails at a node whose condition is neither true nor false", async ({ open, queue }) => {
    const { ran, task } = createTask(queue);
    const late = async (): Promise<boolean> => {
      throw new Error("nobody hears this");
    };
    const graph = dag({ name: "graph", version: 1, queue, onError: "continue" }, (g) => {
      const conditions = { late, count: () => 1, nothing: () => undefined };
      for (const [name, when] of Object.entries(conditions))
        g.node(name, task, { name }, { when: when as unknown as () => boolean });
      g.each("each", ["a"], task, (name) => ({ name }), { when: late as unknown as () => boolean });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, task]);
    const run = await pawl.start(graph);
    expect(await failureOf(run)).toMatchObject({ code: "NODE_FAILED" });
    expect(ran).toEqual([]);
    expect((await run.nodes()).map(({ state, reason }) => `${state}: ${reason}`)).toEqual(
      ["late", "count", "nothing", "each"].map(
        (name) =>
          `failed: The option "when" of the node "${name}" must answer true or false at once: it must not be async.`,
      ),
    );
  });

  test("gives each child the options of its node, and tries itself again if it is told to", async ({
    open,
    queue,
  }) => {
    let calls = 0;
    const flaky = workflow({ name: "flaky", version: 1 }, async () => {
      calls += 1;
      throw new Error("never");
    });
    const quick = workflow({ name: "quick", version: 1, queue }, async (ctx) => ctx.sleep("1h"));
    const retry = { attempts: 2, initial: 0 };
    const graph = dag({ name: "graph", version: 1, queue, onError: "continue", retry }, (g) => {
      g.node("flaky", flaky, undefined, { queue, retry, priority: 7, tags: [queue] });
      const late = g.node("late", quick, undefined, { timeout: 20 });
      return settled(late);
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, flaky, quick]);
    const run = await pawl.start(graph);
    expect(await failureOf(run)).toMatchObject({ code: "NODE_FAILED" });
    expect(calls).toBe(4);
    const { runs } = await pawl.list({ queue, tags: [queue] });
    expect(runs.map(({ priority }) => priority)).toEqual([7, 7]);
    expect((await run.nodes()).map(({ state, reason, runs: count }) => [state, reason, count])).toEqual([
      ["failed", "never", 2],
      ["failed", "timed_out", 1],
    ]);
    await run.retry({ from: "start" });
    await eventually(() => run.status()).toBe("failed");
    expect((await run.nodes())[0]).toMatchObject({ runs: 2 });
  });

  test("fails at a node whose task refuses what it is given", async ({ open, queue }) => {
    const strict = workflow(
      { name: "strict", version: 1, queue, input: z.object({ email: z.email() }) },
      async (_, { email }) => email,
    );
    const { task } = createTask(queue);
    const graph = dag({ name: "graph", version: 1, queue, onError: "pause" }, (g) => {
      const email = g.node("email", task, { name: "email" });
      return g.node("strict", strict, { email });
    });
    const pawl = open(place);
    await replay(pawl, queue, [graph, strict, task]);
    const run = await pawl.start(graph);
    await eventually(() => run.status()).toBe("paused");
    expect((await run.nodes())[1]).toMatchObject({ state: "failed", runs: 0 });
    await run.cancel();
  });
});
