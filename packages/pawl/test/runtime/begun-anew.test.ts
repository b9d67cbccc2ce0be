import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import { clientOf } from "./client-of.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const options = { version: 1, crashLimit: 1_000 } as const;

/**
 * Two branches that give a step one name: which of them the second `c` is decides the order in which the code gets its answers. The
 * child that one of them started fails, after what follows on its start was done.
 */
function createBranches(attempts: number) {
  const world = { isBroken: true, called: [] as string[], children: [] as string[] };
  const engine = createEngine();
  const child = workflow({ ...options, name: "child", retry: { attempts: 1 } }, async (ctx) => {
    await ctx.sleep("1s");
    if (world.isBroken) throw new Error("broken");
    return "grown";
  });
  const step = (name: string, result: string) => () => {
    world.called.push(name);
    return result;
  };
  const parent = workflow({ ...options, name: "parent", retry: { attempts } }, async (ctx) =>
    Promise.all([
      (async () => {
        const started = await ctx.start(child);
        world.children.push(started.id);
        return [await ctx.step("c", step("c of one", "one")), await started.result()];
      })(),
      (async () => {
        const results = [await ctx.step("a", step("a", "a")), await ctx.step("c", step("c of two", "two"))];
        await ctx.step("later", step("later", "later"));
        return results;
      })(),
    ]),
  );
  engine.register(child);
  return { world, engine, parent };
}

const expected = [
  ["one", "grown"],
  ["a", "two"],
];
const calledOnce = ["a", "c of one", "c of two"];
const allOnce = [...calledOnce, "later"];

async function idsOfChildren(engine: Engine): Promise<readonly string[]> {
  return (await engine.list("child")).map(({ id }) => id);
}

test("what follows on the start of a child stays with it when the child is started anew", async () => {
  const { world, engine, parent } = createBranches(4);
  const id = await engine.start(parent);
  await engine.pass(1_500);
  await engine.pass(1_500);
  world.isBroken = false;
  await engine.end(id);
  expect(await engine.output(id)).toEqual(expected);
  expect(world.called.toSorted()).toEqual(allOnce);
  const children = await idsOfChildren(engine);
  expect(children.length).toBeGreaterThan(1);
  // In each attempt the code has the child that it is about.
  expect(new Set(world.children)).toEqual(new Set(children));
});

test("and when the run was redriven", async () => {
  const { world, engine, parent } = createBranches(1);
  const id = await engine.start(parent);
  expect((await engine.end(id)).status).toBe("failed");
  world.isBroken = false;
  await engine.store.redrive([id]);
  expect((await engine.end(id)).status).toBe("completed");
  expect(await engine.output(id)).toEqual(expected);
  expect(world.called.toSorted()).toEqual(allOnce);
  expect(new Set(world.children)).toEqual(new Set(await idsOfChildren(engine)));
});

test("and where its worker dies between the two starts", async () => {
  const { world, engine, parent } = createBranches(4);
  const id = await engine.start(parent);
  await engine.pass(1_500);
  for (let turn = 0; turn < 3; turn++) await engine.crash();
  world.isBroken = false;
  await engine.end(id);
  expect(await engine.output(id)).toEqual(expected);
});

test("a run that is told to stop gets the child that it had, and none is started", async () => {
  const { world, engine, parent } = createBranches(4);
  const id = await engine.start(parent);
  while (!(await engine.facts(id)).includes("attempt_failed")) await engine.pass(10);
  const before = await idsOfChildren(engine);
  await engine.tell(id, "cancel");
  expect((await engine.end(id)).status).toBe("cancelled");
  expect(await idsOfChildren(engine)).toEqual(before);
  expect(world.called.toSorted()).toEqual(allOnce);
});

test("and in a fork, whose source's child has not ended, and in a fork of that", async () => {
  const { world, engine, parent } = createBranches(1);
  const id = await engine.start(parent);
  await engine.idle();
  world.isBroken = false;
  for (let source = id, turn = 0; turn < 2; turn++) {
    // Before its child ends: nothing of what came after the child's start is done again.
    source = (await clientOf(engine).fork(source, { from: "later" })).id;
    await engine.idle();
    const called = [...world.called];
    await engine.end(source);
    expect(await engine.output(source)).toEqual(expected);
    expect(called.toSorted()).toEqual([...calledOnce, ...Array<string>(turn + 2).fill("later")]);
  }
  expect(new Set(world.children)).toEqual(new Set(await idsOfChildren(engine)));
});

test("a pause of the code's own that is over does not hold up the start", async () => {
  const engine = createEngine();
  let isBroken = true;
  const child = workflow({ ...options, name: "child", retry: { attempts: 1 } }, async (ctx) => {
    await ctx.sleep("1s");
    if (isBroken) throw new Error("broken");
    return "grown";
  });
  const parent = workflow({ ...options, name: "parent", retry: { attempts: 3 } }, async (ctx) => {
    const [started] = await Promise.all([ctx.start(child), ctx.pause("look")]);
    return started.result();
  });
  engine.register(child);
  const id = await engine.start(parent);
  await engine.idle();
  await engine.tell(id, "resume");
  while (!(await engine.facts(id)).includes("attempt_failed")) await engine.pass(10);
  isBroken = false;
  expect((await engine.end(id)).status).toBe("completed");
  expect(await engine.output(id)).toBe("grown");
});

test("a run is not parked for it while a step of its is in progress", async () => {
  const engine = createEngine();
  const world = { isBroken: true, slow: 0, called: 0 };
  let slowly = createGate();
  let reserving = createGate();
  const child = workflow({ ...options, name: "child", retry: { attempts: 1 } }, async () => {
    if (world.isBroken) throw new Error("broken");
    return "grown";
  });
  const undo = (): void => {};
  const slow = async (): Promise<void> => {
    world.slow += 1;
    world.called += 1;
    expect(world.slow).toBe(1);
    await slowly.opened;
    world.slow -= 1;
  };
  const parent = workflow({ ...options, name: "parent", retry: { attempts: 1 } }, async (ctx) =>
    Promise.all([
      ctx.step("slow", slow, { undo }),
      (async () => {
        await ctx.step("reserve", () => reserving.opened, { undo });
        return (await ctx.start(child)).result();
      })(),
    ]),
  );
  engine.register(child);
  const id = await engine.start(parent);
  for (const gate of [slowly, reserving]) gate.open();
  expect((await engine.end(id)).status).toBe("failed");
  world.isBroken = false;
  [slowly, reserving] = [createGate(), createGate()];
  await engine.store.redrive([id]);
  await engine.idle();
  // The pause is known when the code comes to the start, with a step under way.
  await engine.tell(id, "pause");
  await engine.idle();
  reserving.open();
  await engine.pass(2_000);
  slowly.open();
  await engine.pass(2_000);
  await engine.tell(id, "resume");
  expect((await engine.end(id)).status).toBe("completed");
  // Once in each life.
  expect(world.called).toBe(2);
});
