import { setTimeout as pause } from "node:timers/promises";
import {
  ref,
  workflow,
  type Context,
  type Transaction,
  type Workflow,
} from "../../packages/pawl/src/index.ts";

/**
 * Releases of one program: the first; the next, which lets runs under way keep the old side; and the next as it must not
 * be, without that.
 */
export type Build = "first" | "patched" | "unpatched";

/** A step or a transaction was called. */
export type Mark = (runId: string, step: string) => Promise<void>;

type Order = Workflow<undefined, readonly string[]>;
type Chain = Workflow<ChainInput, number>;
type Nap = Workflow<{ readonly until: number }, null>;
type Poison = Workflow<{ readonly death: "exit" | "memory" }, null>;

interface ChainInput {
  readonly steps: number;
  readonly stepMs: number;
}

export const order = ref<Order>("order", 1);
export const chain = ref<Chain>("chain", 1);
export const nap = ref<Nap>("nap", 1);
export const poison = ref<Poison>("poison", 1);

export function createWorkflows(build: Build, mark: Mark): readonly Workflow[] {
  return [createOrder(build, mark), createChain(mark), createNap(), createPoison(mark)];
}

/** Rare places: a worker that is killed again and again must not make a crash limit of it. */
const crashLimit = 1_000;

function createOrder(build: Build, mark: Mark): Order {
  return workflow({ name: "order", version: 1, crashLimit }, async (ctx) => {
    const act = (name: string): Promise<string> =>
      ctx.step(name, async () => {
        await mark(ctx.run.id, name);
        return name;
      });
    const first = await act(build === "unpatched" ? "check" : "reserve");
    await ctx.waitForSignal("pay");
    const charge = await buy(ctx, build === "patched" && ctx.patch("euro") ? "charge-euro" : "charge");
    await ctx.waitForSignal("ship");
    return [first, charge, await act("ship")];
  });
}

function buy(ctx: Context, step: string, ms = 0): Promise<string> {
  return ctx.transaction(step, async (tx) => {
    const own = tx as Transaction;
    await own.query("insert into public.purchase (run_id, step) values ($1, $2)", [ctx.run.id, step]);
    if (ms > 0) await pause(ms);
    return step;
  });
}

function createChain(mark: Mark): Chain {
  return workflow({ name: "chain", version: 1, crashLimit }, async (ctx, { steps, stepMs }: ChainInput) => {
    for (let n = 1; n <= steps; n++) {
      const name = `link-${n}`;
      if (n % 3 === 0) await buy(ctx, `buy-${n}`, stepMs);
      else
        await ctx.step(name, async () => {
          await mark(ctx.run.id, name);
          await pause(stepMs);
        });
    }
    return steps;
  });
}

function createNap(): Nap {
  return workflow({ name: "nap", version: 1, crashLimit }, async (ctx, { until }) => {
    await ctx.sleepUntil(until);
    return null;
  });
}

function createPoison(mark: Mark): Poison {
  return workflow({ name: "poison", version: 1, crashLimit: 2 }, async (ctx, { death }) =>
    ctx.step("die", async () => {
      await mark(ctx.run.id, "die");
      if (death === "exit") process.exit(1);
      const eaten: number[][] = [];
      for (;;) eaten.push(Array.from({ length: 100_000 }, (_, n) => n * 1.5));
    }),
  );
}
