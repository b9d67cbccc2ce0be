import { setTimeout as pause } from "node:timers/promises";
import {
  ref,
  workflow,
  type Pawl,
  type RunHandle,
  type Transaction,
  type Workflow,
} from "../../src/index.ts";
import { createEverything } from "./everything.ts";
import { createFrontEnds } from "./front-ends.ts";
import { crashLimit, work } from "./work.ts";
import type { World } from "./world.ts";

// One folder of tests, several processes: workers make the workflows, tests know them by their refs.

/** A whole life: steps, a sleep, two signals of one name, a child. */
interface OrderInput {
  readonly n: number;
  readonly stepMs: number;
}

export interface OrderOutput {
  readonly reserved: number;
  readonly packed: readonly [number, number];
  readonly words: readonly [string, string];
  readonly part: number;
  readonly shipped: number;
}

/** How a run ends its process: by itself, as the kernel does, or as V8 does when it is out of memory. */
export type Death = "exit" | "kill" | "abort";

interface ChainInput {
  readonly steps: number;
  readonly stepMs: number;
}

/** Transactions one after the other, in Pawl's database and in another by turns. */
interface ShoppingInput {
  readonly purchases: number;
  readonly purchaseMs: number;
}

type Order = Workflow<OrderInput, OrderOutput>;
type Part = Workflow<OrderInput, number>;
type Chain = Workflow<ChainInput, readonly number[]>;
type Fan = Workflow<ChainInput, readonly number[]>;
type Blocking = Workflow<{ readonly blockMs: number }, string>;
type Poison = Workflow<{ readonly death: Death }, never>;
type Meeting = Workflow<undefined, string>;
type Saga = Workflow<SagaInput, never>;

/** Where a saga kills its process, the first time that it comes there. */
interface SagaInput {
  readonly diesIn: string;
}
type Narrator = Workflow<ChainInput, readonly number[]>;
type Shopping = Workflow<ShoppingInput, readonly number[]>;

/** Takes so many signals a turn, for so many turns, each turn a run of its own. */
interface TallyInput {
  readonly turnsLeft: number;
  readonly signals: number;
  readonly counted: readonly number[];
}
type Tally = Workflow<TallyInput, readonly number[]>;

export const order = ref<Order>("order", 1);
export const chain = ref<Chain>("chain", 1);
export const fan = ref<Fan>("fan", 1);
export const blocking = ref<Blocking>("blocking", 1);
export const poison = ref<Poison>("poison", 1);
export const meeting = ref<Meeting>("meeting", 1);
export const saga = ref<Saga>("saga", 1);
export const narrator = ref<Narrator>("narrator", 1);
export const tally = ref<Tally>("tally", 1);
export const shopping = ref<Shopping>("shopping", 1);

export function expectedOutput(n: number): OrderOutput {
  return {
    reserved: n,
    packed: [n + 1, n + 2],
    words: [`first ${n}`, `second ${n}`],
    part: n + 3,
    shipped: n + 4,
  };
}

export function startChains(
  pawl: Pawl,
  count: number,
  input: ChainInput,
): Promise<readonly RunHandle<readonly number[]>[]> {
  return Promise.all(Array.from({ length: count }, () => pawl.start(chain, input)));
}

export function createWorkflows(world: World): readonly Workflow[] {
  const part = createPart(world);
  const order = createOrder(world, part);
  return [
    order,
    part,
    createChain(world),
    createFan(world),
    createBlocking(world),
    createPoison(world),
    createMeeting(world),
    createSaga(world),
    createNarrator(world),
    createShopping(world),
    createTally(world),
    ...createEverything(world),
    ...createFrontEnds(world),
  ];
}

function createOrder({ ledger }: World, part: Part): Order {
  return workflow({ name: "order", version: 1, crashLimit }, async (ctx, { n, stepMs }: OrderInput) => {
    const step = (name: string, result: number): Promise<number> =>
      ctx.step(name, () => work(ledger, ctx.run.id, name, stepMs, result));
    const reserved = await step("reserve", n);
    await ctx.sleep(30);
    const [left, right] = await Promise.all([step("pack-left", n + 1), step("pack-right", n + 2)]);
    const first = await ctx.waitForSignal<string>("go");
    const made = await ctx.call(part, { n, stepMs });
    const second = await ctx.waitForSignal<string>("go");
    const shipped = await step("ship", n + 4);
    return { reserved, packed: [left, right] as const, words: [first, second] as const, part: made, shipped };
  });
}

function createPart({ ledger }: World): Part {
  return workflow({ name: "part", version: 1, crashLimit }, async (ctx, { n, stepMs }: OrderInput) =>
    ctx.step("make", () => work(ledger, ctx.run.id, "make", stepMs, n + 3)),
  );
}

function createChain({ ledger }: World): Chain {
  return workflow({ name: "chain", version: 1 }, async (ctx, { steps, stepMs }: ChainInput) => {
    const done: number[] = [];
    for (let n = 1; n <= steps; n++) {
      const name = `link-${n}`;
      done.push(await ctx.step(name, () => work(ledger, ctx.run.id, name, stepMs, n)));
    }
    return done;
  });
}

/** The same steps all at once, each taking longer than the one before. */
function createFan({ ledger }: World): Fan {
  return workflow({ name: "fan", version: 1 }, async (ctx, { steps, stepMs }: ChainInput) => {
    const numbers = Array.from({ length: steps }, (_, index) => index + 1);
    return Promise.all(
      numbers.map((n) => ctx.step(`link-${n}`, () => work(ledger, ctx.run.id, `link-${n}`, n * stepMs, n))),
    );
  });
}

/** Only its first call blocks: one that always does would take down every worker in turn. */
function createBlocking({ ledger }: World): Blocking {
  return workflow(
    { name: "blocking", version: 1 },
    async (ctx, { blockMs }: { readonly blockMs: number }) => {
      await ctx.step("compute", async () => {
        const line = await ledger.begin(ctx.run.id, "compute");
        const until = performance.now() + blockMs;
        while (line.call === 1 && performance.now() < until);
        await line.end();
      });
      return ctx.step("after", () => work(ledger, ctx.run.id, "after", 1, "computed"));
    },
  );
}

function createPoison({ ledger }: World): Poison {
  return workflow({ name: "poison", version: 1 }, async (ctx, { death }: { readonly death: Death }) =>
    ctx.step("die", async () => {
      await ledger.begin(ctx.run.id, "die");
      await pause(50);
      if (death === "exit") process.exit(1);
      if (death === "abort") process.abort();
      process.kill(process.pid, "SIGKILL");
      return new Promise<never>(() => {});
    }),
  );
}

function createMeeting({ ledger, entered, aboutToWait }: World): Meeting {
  return workflow({ name: "meeting", version: 1 }, async (ctx) => {
    entered(ctx.run.id);
    await ctx.step("arrive", async () => {
      await ledger.begin(ctx.run.id, "arrive");
      aboutToWait(ctx.run.id);
    });
    return ctx.waitForSignal<string>("go");
  });
}

/** Three steps, which are undone, since it fails then. */
function createSaga({ ledger }: World): Saga {
  return workflow(
    { name: "saga", version: 1, crashLimit, retry: { attempts: 1 } },
    async (ctx, { diesIn }: SagaInput): Promise<never> => {
      const act = async (name: string): Promise<string> => {
        const line = await ledger.begin(ctx.run.id, name);
        if (name === diesIn && line.call === 1) {
          process.kill(process.pid, "SIGKILL");
          await new Promise(() => {});
        }
        await line.end();
        return name;
      };
      for (const name of ["reserve", "charge", "ship"]) {
        await ctx.step(name, () => act(name), {
          undo: async (_, { inDoubt }) => void (await act(`undo ${name}${inDoubt ? " in doubt" : ""}`)),
          ...(name === "ship" && { onCrash: "fail" }),
        });
      }
      throw new Error("no money");
    },
  );
}

/** Streams from code and from a step, publishes, and answers updates all the while; until it is told to stop. */
function createNarrator({ ledger }: World): Narrator {
  return workflow(
    { name: "narrator", version: 1, crashLimit },
    async (ctx, { steps, stepMs }: ChainInput) => {
      const asked: number[] = [];
      ctx.onUpdate("double", async (n: number, inner) => {
        const doubled = await inner.step("double", () =>
          work(ledger, ctx.run.id, `double-${n}`, stepMs, 2 * n),
        );
        asked.push(n);
        return doubled;
      });
      const out = ctx.stream<string>("tale");
      await out.write("begin");
      await ctx.step("tell", async ({ stream }) => {
        for (let n = 1; n <= steps; n++) {
          await stream<string>("tale").write(`word ${n}`);
          await pause(stepMs);
        }
      });
      await ctx.publish("stage", "told");
      await out.write("end");
      await out.close();
      await ctx.waitForSignal("stop");
      return asked;
    },
  );
}

function createTally({ ledger }: World): Tally {
  return workflow(
    { name: "tally", version: 1, crashLimit },
    async (ctx, { turnsLeft, signals, counted }: TallyInput): Promise<readonly number[]> => {
      const taken = [...counted];
      for (let n = 0; n < signals; n++) taken.push(await ctx.waitForSignal<number>("count"));
      await ctx.step("note", () => work(ledger, ctx.run.id, "note", 5, null));
      if (turnsLeft === 0) return taken;
      return ctx.continueAs({ turnsLeft: turnsLeft - 1, signals, counted: taken });
    },
  );
}

/** The user's table: a row for every purchase that has committed. */
export const createPurchasesSql = `
  create table if not exists public.purchase (run_id uuid not null, step text not null, pid integer not null);`;

function createShopping({ buying, foreign }: World): Shopping {
  return workflow(
    { name: "shopping", version: 1, crashLimit },
    async (ctx, { purchases, purchaseMs }: ShoppingInput) => {
      const done: number[] = [];
      for (let n = 1; n <= purchases; n++) {
        const step = `buy-${n}`;
        const buy = async (tx: Transaction): Promise<number> => {
          buying(ctx.run.id, step);
          await tx.query("insert into public.purchase (run_id, step, pid) values ($1, $2, $3)", [
            ctx.run.id,
            step,
            process.pid,
          ]);
          await pause(purchaseMs);
          return n;
        };
        done.push(
          await (n % 2 === 1
            ? ctx.transaction(step, (tx) => buy(tx as Transaction))
            : ctx.transaction(step, buy, { on: foreign })),
        );
      }
      return done;
    },
  );
}
