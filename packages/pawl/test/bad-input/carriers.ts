import { randomUUID } from "node:crypto";
import { workflow, type Context, type Pawl } from "../../src/index.ts";

/** Returns what it is given. */
const echo = workflow(
  { name: "echo", version: 1, retry: { attempts: 1 } },
  async (_ctx, input: unknown) => input,
);

/** What a run keeps in its own code: the value is made there, since it may not survive the way. */
type Keep = (ctx: Context, make: () => unknown) => unknown;

const keeps = {
  "a step's result": (ctx, make) => ctx.step("keep", make),
  "a transaction's result": (ctx, make) => ctx.transaction("keep", make),
  "a child's input and output": (ctx, make) => ctx.call(echo, make()),
  "a child's input": async (ctx, make) => (await ctx.start(echo, make())).result(),
} satisfies Readonly<Record<string, Keep>>;

type KeepName = keyof typeof keeps;

const makers = new Map<string, () => unknown>();

const keeper = workflow(
  { name: "keeper", version: 1, retry: { attempts: 1 } },
  async (ctx, { way, maker }: { readonly way: KeepName; readonly maker: string }) => {
    const make = makers.get(maker) ?? (() => undefined);
    return keeps[way](ctx, make);
  },
);

const listener = workflow({ name: "listener", version: 1 }, async (ctx) => ctx.waitForSignal("value"));

const answerer = workflow({ name: "answerer", version: 1 }, async (ctx) => {
  ctx.onUpdate("echo", (payload) => payload);
  await ctx.waitForSignal("enough");
});

const shower = workflow({ name: "shower", version: 1 }, async (ctx, maker: string) => {
  const make = makers.get(maker) ?? (() => undefined);
  await ctx.publish("value", make());
});

const writer = workflow({ name: "writer", version: 1 }, async (ctx, maker: string) => {
  const make = makers.get(maker) ?? (() => undefined);
  await ctx.stream("values").write(make());
  await ctx.step("write", ({ stream }) => stream("values").write(make()));
});

const continuer = workflow(
  { name: "continuer", version: 1 },
  async (ctx, input: { readonly maker: string }) => {
    if (!("maker" in input)) return input;
    const make = makers.get(input.maker) ?? (() => undefined);
    return ctx.continueAs({ value: make() });
  },
);

export const carrying = [echo, keeper, listener, answerer, shower, writer, continuer];

/** Sends a value somewhere, and answers what comes back. */
export type Carry = (pawl: Pawl, make: () => unknown) => Promise<unknown>;

/** Every place in which a value is kept. */
export const carriers: Readonly<Record<string, Carry>> = {
  "an input and an output": async (pawl, make) => (await pawl.start(echo, make())).result(),
  "an input that is read": async (pawl, make) =>
    (await pawl.get((await pawl.start(echo, make(), { queue: "nobody" })).id))?.input,
  "an input under a key": async (pawl, make) => {
    const key = randomUUID();
    const run = await pawl.start(echo, make(), { key });
    const again = await pawl.start(echo, make(), { key });
    return again.id === run.id ? run.result() : new Error("Two runs have one key.");
  },
  "one of many inputs": async (pawl, make) => {
    const [first, second] = await pawl.startMany(echo, [{ input: "other" }, { input: make() }]);
    await first?.result();
    return second?.result();
  },
  "a fork's input": async (pawl, make) => {
    const run = await pawl.start(listener);
    await run.signal("value", 1);
    await run.result();
    const fork = await run.fork({ from: "signal:value", input: make(), queue: "nobody" });
    return (await pawl.get(fork.id))?.input;
  },
  "a signal": async (pawl, make) => {
    const run = await pawl.start(listener);
    try {
      await run.signal("value", make());
    } catch (error) {
      await run.cancel();
      throw error;
    }
    return run.result();
  },
  "a signal that starts": async (pawl, make) => {
    const terms = { key: randomUUID(), signal: "value", payload: make() };
    return (await pawl.signalOrStart(listener, terms)).result();
  },
  "an update and its answer": async (pawl, make) => {
    const run = await pawl.start(answerer);
    try {
      return await run.update("echo", make());
    } finally {
      await run.signal("enough");
    }
  },
  "a published value": async (pawl, make) => {
    const run = await pawl.start(shower, noteMaker(make));
    await run.result();
    return run.published("value");
  },
  "the items of a stream": async (pawl, make) => {
    const run = await pawl.start(writer, noteMaker(make));
    await run.result();
    const values: unknown[] = [];
    for await (const { value } of run.stream("values")) values.push(value);
    return values.length === 2 ? values[1] : new Error(`There are ${values.length} items.`);
  },
  "the input of the run that goes on": async (pawl, make) => {
    const run = await pawl.start(continuer, { maker: noteMaker(make) });
    return ((await run.result()) as unknown as { readonly value: unknown }).value;
  },
  ...Object.fromEntries(
    (Object.keys(keeps) as KeepName[]).map((way): [string, Carry] => [
      way,
      async (pawl, make) => (await pawl.start(keeper, { way, maker: noteMaker(make) })).result(),
    ]),
  ),
};

function noteMaker(make: () => unknown): string {
  const maker = randomUUID();
  makers.set(maker, make);
  return maker;
}
