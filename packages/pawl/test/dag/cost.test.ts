import { expect, onTestFinished } from "vitest";
import { createPawl, dag, workflow, type Node, type Workflow } from "../../src/index.ts";
import { test, upTo } from "../model/model-test.ts";
import { createCountingPool } from "../postgres/counting-pool.ts";

const layers = 10;
const width = 100;

test("a graph costs hardly more than the same children asked for one layer after the other", async ({
  database,
  home,
}) => {
  const counting = createCountingPool(database.url);
  const pawl = createPawl({ pool: counting.pool, schema: home });
  onTestFinished(async () => {
    await pawl.close({ timeout: 0 });
    await counting.pool.end();
  });
  const task = workflow({ name: "task", version: 1 }, async (_, input: unknown) => typeof input);
  const plain = workflow({ name: "plain", version: 1 }, async (ctx) => {
    for (const layer of upTo(layers))
      await Promise.all(upTo(width).map((place) => ctx.call(task, { layer, place })));
  });
  const graph = dag({ name: "graph", version: 1 }, (g) => {
    let above: readonly Node[] = [];
    for (const layer of upTo(layers)) {
      above = upTo(width).map((place) =>
        g.node(`${layer}/${place}`, task, {
          layer,
          place,
          given: upTo(3).map((by) => above[(place + by) % width] ?? null),
        }),
      );
    }
  });
  await pawl.worker({ workflows: [plain, graph, task] }).start();
  const measure = async (measured: Workflow<undefined>): Promise<number> => {
    counting.reset();
    await (await pawl.start(measured)).result();
    return counting.sent().length;
  };
  await measure(plain);
  await measure(graph);
  const cost = { plain: await measure(plain), graph: await measure(graph) };
  expect(cost.plain).toBeGreaterThan(layers);
  expect(cost.graph).toBeLessThan(1.5 * cost.plain);
  const { runs } = await pawl.list({ workflow: "graph", limit: 1 });
  const history = await pawl.handle(runs[0]!.id).history();
  // The graph itself is published; beside that there are the starts and ends of its children.
  expect(history).toHaveLength(2 * layers * width + 2);
}, 120_000);
