import { test } from "pawl-test-support";
import { expect } from "vitest";
import { z } from "zod";
import { createPawl, ref, workflow } from "../../src/index.ts";

const double = workflow(
  { name: "double", version: 1, input: z.object({ n: z.string().transform(Number).default(4) }) },
  async (_ctx, { n }) => n * 2,
);
const doubleElsewhere = ref<typeof double>("double", 1);
const parent = workflow({ name: "parent", version: 1 }, async (ctx) => ctx.call(doubleElsewhere, { n: "3" }));

test("the input of a run that is started by name is parsed by the worker that takes it", async ({
  database,
  schema,
}) => {
  await using pawl = createPawl({ url: database.url, schema });
  await pawl.migrate();
  await pawl.worker({ workflows: [double, parent] }).start();
  expect(await (await pawl.start(doubleElsewhere, { n: "21" })).result()).toBe(42);
  expect(await (await pawl.start(doubleElsewhere, {})).result()).toBe(8);
  expect(await (await pawl.start(parent)).result()).toBe(6);
});

test("one that does not fit fails the run, and is not tried again", async ({ database, schema }) => {
  await using pawl = createPawl({ url: database.url, schema });
  await pawl.migrate();
  await pawl.worker({ workflows: [double] }).start();
  const run = await pawl.start(doubleElsewhere, { n: 21 } as never);
  await expect(run.result()).rejects.toMatchObject({
    code: "RUN_FAILED",
    cause: expect.objectContaining({ code: "INVALID_PAYLOAD" }),
  });
  expect(await run.attempts()).toMatchObject([{ outcome: "failed", willRetry: false }]);
});
