import { fc } from "pawl-test-support/fast-check";
import { describe, expect } from "vitest";
import {
  dag,
  quorum,
  settled,
  workflow,
  type Node,
  type NodeState,
  type Pawl,
  type RunHandle,
  type SettledNode,
  type Workflow,
} from "../../src/index.ts";
import { eventually, places, replay, test } from "../model/model-test.ts";

/** A node at random: what it needs are earlier ones, by how far back they are. */
interface RandomNode {
  readonly needs: readonly { readonly back: number; readonly isSettled: boolean; readonly isData: boolean }[];
  /** Of quorum; 0: all, 1: any. */
  readonly join: number;
  readonly isWanted: boolean;
  readonly isOptional: boolean;
  readonly fails: boolean;
  /** How many items it is run for; 0: it is no collection. */
  readonly items: number;
}

interface RandomGraph {
  readonly nodes: readonly RandomNode[];
  readonly onError: "fail" | "pause" | "continue";
  readonly cases: readonly {
    readonly required: readonly number[];
    readonly optional: readonly number[] | null;
  }[];
  /** Which node is returned. */
  readonly returned: number;
  readonly isReturnedSettled: boolean;
}

const often = (weight: number): fc.Arbitrary<boolean> =>
  fc.oneof({ weight, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) });

const randomNode: fc.Arbitrary<RandomNode> = fc.record({
  needs: fc.array(fc.record({ back: fc.nat(30), isSettled: fc.boolean(), isData: fc.boolean() }), {
    maxLength: 4,
  }),
  join: fc.oneof(fc.constant(0), fc.constant(1), fc.integer({ min: 2, max: 4 })),
  isWanted: often(8),
  isOptional: fc.boolean(),
  fails: often(5).map((succeeds) => !succeeds),
  items: fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) },
  ),
});

const randomGraph = (most: number): fc.Arbitrary<RandomGraph> =>
  fc.record({
    nodes: fc.array(randomNode, { minLength: 1, maxLength: most, size: "max" }),
    onError: fc.constantFrom("fail", "pause", "continue"),
    cases: fc.array(
      fc.record({
        required: fc.array(fc.nat(200), { maxLength: 3 }),
        optional: fc.option(fc.array(fc.nat(200), { maxLength: 20 })),
      }),
      { maxLength: 3 },
    ),
    returned: fc.nat(200),
    isReturnedSettled: fc.boolean(),
  });

/** Which earlier node this is, by its number; the first node has none. */
function needsOf({ needs }: RandomNode, index: number): Map<number, { isSettled: boolean; isData: boolean }> {
  const found = new Map<number, { isSettled: boolean; isData: boolean }>();
  if (index === 0) return found;
  for (const { back, isSettled, isData } of needs) {
    const number = index - 1 - (back % index);
    if (!found.has(number)) found.set(number, { isSettled, isData });
  }
  return found;
}

type End = "completed" | "failed" | "skipped";

/** How the graph must end if everything runs that can: written another way than the driver, from the guide. */
function evaluate(graph: RandomGraph): { readonly ends: readonly End[]; readonly isSuccess: boolean } {
  const { nodes, cases } = graph;
  const ends: End[] = [];
  const byChoice: boolean[] = [];
  for (const [index, node] of nodes.entries()) {
    const needs = [...needsOf(node, index)];
    const there = needs.filter(([need, { isSettled }]) => isSettled || ends[need] === "completed");
    const begins = there.length >= leastOf(node, needs.length);
    byChoice[index] = needs
      .filter(([need, { isSettled }]) => !isSettled && ends[need] !== "completed")
      .every(([need]) => ends[need] === "skipped" && byChoice[need] === true);
    if (begins) byChoice[index] = !node.isWanted;
    ends[index] = !begins || !node.isWanted ? "skipped" : node.fails ? "failed" : "completed";
  }
  const returned = graph.returned % nodes.length;
  const minded = nodes.map((_, index) => isMinded(graph, index));
  const hasResult =
    graph.isReturnedSettled ||
    ends[returned] === "completed" ||
    (ends[returned] === "skipped" && byChoice[returned]);
  const isSatisfied =
    cases.length === 0
      ? ends.every((end, index) => end !== "failed" || !minded[index])
      : cases.some(
          ({ required, optional }) =>
            required.every((node) => ends[node % nodes.length] === "completed") &&
            (optional === null ||
              ends.every(
                (end, index) => end !== "failed" || optional.some((node) => node % nodes.length === index),
              )),
        );
  return { ends, isSuccess: isSatisfied && hasResult === true };
}

function leastOf({ join }: RandomNode, needs: number): number {
  return join === 0 || needs === 0 ? needs : Math.min(join, needs);
}

function isOptional({ nodes, returned, isReturnedSettled }: RandomGraph, index: number): boolean {
  return nodes[index]!.isOptional && (isReturnedSettled || returned % nodes.length !== index);
}

/** Whether its failure matters: it is neither optional nor always taken settled. */
function isMinded(graph: RandomGraph, index: number): boolean {
  if (isOptional(graph, index)) return false;
  const { nodes, returned, isReturnedSettled } = graph;
  const takers = nodes.flatMap((node, taker) => {
    const need = needsOf(node, taker).get(index);
    return need === undefined ? [] : [need.isSettled];
  });
  if (returned % nodes.length === index) takers.push(isReturnedSettled);
  return takers.length === 0 || takers.includes(false);
}

interface Order {
  readonly name: string;
  readonly given: readonly unknown[];
}

interface World {
  readonly graph: Workflow<undefined>;
  readonly task: Workflow<Order, string>;
  /** What each task was given, every time it ran. */
  readonly ran: Map<string, readonly unknown[][]>;
  mend(): void;
}

function build(random: RandomGraph, queue: string): World {
  const ran = new Map<string, unknown[][]>();
  let isMended = false;
  const task = workflow(
    { name: "task", version: 1, queue, retry: { attempts: 1 } },
    async (_, { name, given }: Order) => {
      ran.set(name, [...(ran.get(name) ?? []), [...given]]);
      const [index, item] = name.split(".").map(Number);
      // Of a collection, the last item.
      const node = random.nodes[index!]!;
      if (!isMended && node.fails && (item === undefined || item === node.items - 1))
        throw new Error(`${name} fails`);
      return name;
    },
  );
  const graph = dag({ name: "graph", version: 1, queue, onError: random.onError }, (g) => {
    const made: Node[] = [];
    for (const [index, node] of random.nodes.entries()) {
      const needs = [...needsOf(node, index)].map(([need, { isSettled, isData }]) => {
        const reference: Node | SettledNode = isSettled ? settled(made[need]!) : made[need]!;
        return { reference, isData };
      });
      const given = needs.filter(({ isData }) => isData).map(({ reference }) => reference);
      const least = leastOf(node, needs.length);
      const options = {
        after: needs.filter(({ isData }) => !isData).map(({ reference }) => reference),
        join:
          needs.length === 0 || node.join === 0
            ? ("all" as const)
            : node.join === 1
              ? ("any" as const)
              : quorum(least),
        when: () => node.isWanted,
        optional: isOptional(random, index),
      };
      const name = String(index);
      const items = Array.from({ length: node.items }, (_, item) => `${index}.${item}`);
      made.push(
        node.items === 0
          ? g.node(name, task, { name, given }, options)
          : g.each(name, items, task, (item) => ({ name: item, given }), { ...options, concurrency: 2 }),
      );
    }
    const pick = (numbers: readonly number[]): readonly Node[] =>
      numbers.map((node) => made[node % made.length]!);
    if (random.cases.length > 0)
      g.success(
        ...random.cases.map(({ required, optional }) => ({
          required: pick(required),
          ...(optional !== null && { optional: pick(optional) }),
        })),
      );
    const returned = made[random.returned % made.length]!;
    return random.isReturnedSettled ? settled(returned) : returned;
  });
  return { graph, task, ran, mend: () => (isMended = true) };
}

/** Every need that was there was given as it ended; what is missing is one that the join did not wait for. */
function expectInputs({ nodes }: RandomGraph, ends: readonly End[], { ran }: World): void {
  for (const [name, times] of ran) {
    const index = Number(name.split(".")[0]);
    const node = nodes[index]!;
    const needs = [...needsOf(node, index)].filter(([, { isData }]) => isData);
    for (const given of times) {
      for (const [place, [need, { isSettled }]] of needs.entries()) {
        const value = given[place];
        if (value === undefined) expect(node.join === 0 && ends[need] === "completed").toBe(false);
        else if (isSettled) expect(value).toMatchObject({ status: ends[need] });
        else expect([String(need), resultOf(nodes[need]!, need)]).toContainEqual(value);
      }
    }
  }
}

function resultOf({ items }: RandomNode, index: number): unknown {
  return Array.from({ length: items }, (_, item) => `${index}.${item}`);
}

const statusOf = async (run: RunHandle): Promise<string> => run.status();

/** Runs a graph at random, with a worker that is replaced now and then, and compares it with what must come of it. */
async function check(random: RandomGraph, pawl: Pawl, queue: string): Promise<void> {
  const world = build(random, queue);
  const { ends, isSuccess } = evaluate(random);
  let worker = await replay(pawl, queue, [world.graph, world.task]);
  const run = await pawl.start(world.graph);
  for (const stickyRuns of [100, 0, 100]) {
    await worker.stop({ timeout: 0 });
    worker = await replay(pawl, queue, [world.graph, world.task], { stickyRuns });
  }
  await eventually(() => statusOf(run)).toMatch(/^(?:completed|failed|paused)$/);
  const isPaused = (await statusOf(run)) === "paused";
  const isFailureMinded = ends.some((end, index) => end === "failed" && isMinded(random, index));
  expect(isPaused).toBe(random.onError === "pause" && isFailureMinded);
  const states = new Map((await run.nodes()).map(({ name, state }) => [name, state]));
  if (isPaused) await mend(random, world, run, states);
  else {
    expect(await statusOf(run)).toBe(isSuccess ? "completed" : "failed");
    const isWhole = random.onError !== "fail" || isSuccess;
    if (isWhole) expect([...states.values()]).toEqual(ends);
    expectInputs(random, ends, world);
    const completed = [...states]
      .filter(([, state]) => state === "completed")
      .map(([name]) => ends[Number(name)]);
    expect(completed.every((end) => end === "completed")).toBe(true);
  }
  await worker.stop({ timeout: 0 });
}

/** Once it is mended and resumed, everything runs as if those had not failed that had not been dealt with. */
async function mend(
  random: RandomGraph,
  world: World,
  run: RunHandle,
  paused: ReadonlyMap<string, NodeState>,
): Promise<void> {
  const before = new Map([...world.ran].map(([name, times]) => [name, times.length]));
  world.mend();
  await run.resume();
  await eventually(() => statusOf(run)).toMatch(/^(?:completed|failed)$/);
  const minds = (index: number): boolean => isMinded(random, index);
  const hadFailed = (index: number): boolean => paused.get(String(index)) === "failed";
  const nodes = random.nodes.map((node, index) => ({
    ...node,
    fails: node.fails && hadFailed(index) && !minds(index),
  }));
  const { ends, isSuccess } = evaluate({ ...random, nodes });
  expect(await statusOf(run)).toBe(isSuccess ? "completed" : "failed");
  expect((await run.nodes()).map(({ state }) => state)).toEqual(ends);
  for (const [name, times] of before) {
    const node = random.nodes[Number(name.split(".")[0])]!;
    const wasMended = node.fails && minds(Number(name.split(".")[0]));
    if (!wasMended) expect(world.ran.get(name)).toHaveLength(times);
  }
}

describe.each(places)("random graphs in %s", (place) => {
  const [most, numRuns] = place === "memory" ? [200, 40] : [60, 8];

  test("end as the rules say, whatever fails and whoever runs them", async ({ open, queue }) => {
    const pawl = open(place);
    let number = 0;
    await fc.assert(
      fc.asyncProperty(randomGraph(most), (random) => check(random, pawl, `${queue}-${number++}`)),
      { numRuns, endOnFailure: true },
    );
  }, 240_000);
});
