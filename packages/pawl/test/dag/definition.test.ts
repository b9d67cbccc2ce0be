import { inspect } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";
import { dag, PawlError, quorum, settled, workflow, type Graph, type Node } from "../../src/index.ts";

const task = workflow({ name: "task", version: 1 }, async (_, input: unknown) => input);
const options = { name: "graph", version: 1 } as const;

/** All that is wrong with a graph, as one error tells it. */
function problemsOf(draw: (g: Graph<never>) => unknown, given: object = options): readonly string[] {
  try {
    dag(given as typeof options, draw as (g: Graph) => unknown);
  } catch (error) {
    if (!PawlError.is(error, "INVALID_OPTION")) throw error;
    return (error.details["problems"] as readonly { readonly message: string }[]).map(
      ({ message }) => message,
    );
  }
  return [];
}

test("a graph is a workflow", () => {
  const graph = dag(
    { name: "graph", version: 3, queue: "q", timeout: "1h", input: z.object({ day: z.string() }) },
    (g) => g.node("only", task, g.input.day),
  );
  expect(graph).toMatchObject({ name: "graph", version: 3, queue: "q", timeoutMs: 3_600_000 });
  expect(graph.retry.attempts).toBe(1);
});

test("one error tells all that is wrong with a graph and its options", () => {
  let foreign: Node | null = null;
  dag(options, (g) => {
    foreign = g.node("foreign", task);
  });
  const draw = (g: Graph<never>): unknown => {
    const one = g.node("one", task);
    g.node("one", task);
    g.node("", task);
    g.node("other", task, { deep: [foreign] });
    g.node("after", task, null, { after: ["one" as unknown as Node] });
    g.node("few", task, [one], { join: quorum(2) });
    g.node("none", task, null, { join: "any" });
    g.node("no task", undefined as unknown as typeof task);
    g.node("options", task, null, { queu: "q", priority: 1.5, join: "most" } as object);
    g.each("items", 3 as unknown as number[], task, (item) => item);
    g.each("no function", [1], task, 1 as unknown as (item: number) => unknown);
    g.success({ required: ["one" as unknown as Node] });
    return g.node("result", task, null, { optional: true });
  };
  expect(problemsOf(draw, { name: "", version: 0, onError: "stop" })).toEqual([
    'The option "name" of dag must not be empty.',
    'The option "version" of dag must be from 1 to 2147483647.',
    'The option "onError" of dag must be "fail" or "pause" or "continue".',
    'There are two nodes with the name "one".',
    "A node's name must not be empty.",
    'The node "other" refers to "foreign", which is no node of this graph.',
    'The node "after" is to run after what is no node.',
    'The node "few" can never begin: it waits for 1, and needs 2 of them.',
    'The node "none" can never begin: it waits for 0, and needs 1 of them.',
    'The node "no task" needs a workflow made with workflow(), machine(), dag() or ref(); is it undefined through a circular import?',
    'There is no option "options.queu" of dag. Did you mean "options.queue"?',
    'The option "options.priority" of dag must be a whole number.',
    'The option "options.join" of dag must be "all", "any" or quorum(n).',
    'What the node "items" has items of must be a list, or a node.',
    'The node "no function" needs a function that makes the input of an item.',
    "success refers to what is no node.",
    'The node "result" is optional: return settled(node), for it may have no result.',
  ]);
});

test("quorums, items and drawings that cannot be are refused", () => {
  expect(problemsOf((g) => g.node("n", task, [g.node("m", task)], { join: quorum(0) }))).toEqual([
    'The option "n.join" of dag must be from 1 to 2147483647.',
  ]);
  expect(problemsOf((g) => g.node("n", task, [g.node("m", task)], { join: quorum(1.5) }))).toEqual([
    'The option "n.join" of dag must be a whole number.',
  ]);
  const list = workflow({ name: "list", version: 1 }, async () => [1]);
  expect(problemsOf((g) => g.each("n", g.node("m", list), task, (item) => item, { join: "any" }))).toEqual([
    'The node "n" might begin before its items are there: its join must be "all".',
  ]);
  expect(problemsOf(() => {})).toEqual(["A graph needs at least one node."]);
  expect(problemsOf(async (g) => g.node("n", task))).toEqual([
    "The function of a graph only draws it: it must not be async.",
  ]);
  const round: unknown[] = [];
  round.push(round);
  expect(problemsOf((g) => g.node("n", task, round))).toEqual([
    'The node "n" has an input that cannot be read; does it hold itself?',
  ]);
  expect(problemsOf(undefined as never)).toEqual([
    "dag needs its function after the options: dag(options, (g) => …).",
  ]);
  expect(() => settled({} as Node)).toThrow("settled needs a node of a graph.");
});

test("a reference cannot be spread, but printed", () => {
  const refusal = expect.objectContaining({
    code: "INVALID_OPTION",
    message: "A reference cannot be spread: pass it whole, or name its fields.",
  }) as Error;
  const input = z.object({ day: z.string(), list: z.array(z.object({ id: z.string() })) });
  expect(() => dag({ ...options, input }, (g) => g.node("n", task, { ...g.input }))).toThrow(refusal);
  expect(() =>
    dag({ ...options, input }, (g) => g.each("n", g.input.list, task, (item) => ({ ...item }))),
  ).toThrow(refusal);
  expect(() =>
    dag({ ...options, input }, (g) => {
      expect(inspect(g.input)).toBe("{}");
      return g.node("n", task, { all: g.input, list: [g.input.list] });
    }),
  ).not.toThrow();
});

test("what the function that draws throws is thrown", () => {
  expect(() =>
    dag(options, () => {
      throw new TypeError("mine");
    }),
  ).toThrow(new TypeError("mine"));
});
