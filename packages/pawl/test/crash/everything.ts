import { setTimeout as pause } from "node:timers/promises";
import {
  NonRetryableError,
  ref,
  workflow,
  type PawlError,
  type StepContext,
  type Transaction,
  type Workflow,
} from "../../src/index.ts";
import type { World } from "./world.ts";

// One workflow that uses all that a context offers, and the children it needs. How it ends is known beforehand.

interface EverythingInput {
  /** Where its children are started, too. */
  readonly queue: string;
  readonly turn: number;
  readonly done: readonly TurnOutcome[];
}

/** What one turn of the loop brought. */
interface TurnOutcome {
  readonly isPatched: boolean;
  readonly pages: unknown;
  readonly bought: readonly number[];
  readonly saga: readonly unknown[];
  readonly settled: readonly unknown[];
  readonly winner: string;
  readonly held: unknown;
  readonly doubles: readonly number[];
  readonly chains: readonly (readonly number[])[];
  readonly begun: number;
  readonly timedOut: null;
  readonly words: readonly string[];
}

interface ChildInput {
  readonly turn: number;
}

type Everything = Workflow<EverythingInput, readonly TurnOutcome[]>;
type Doubling = Workflow<number, number>;
type Undone = Workflow<ChildInput, never>;

export const everything = ref<Everything>("everything", 1);
export const turns = 3;
/** What every turn writes to its stream, once what came to nothing is dropped. */
export const everythingTold = ["begin", "word 1", "word 2", "word 3", "end"];
/** The workflows whose runs never complete, by what becomes of them instead. */
export const undoneAs = { "everything-saga": "failed", "everything-reserve": "cancelled" } as const;

function expectedTurn(turn: number): TurnOutcome {
  return {
    isPatched: true,
    pages: [{ page: 1 }, { page: 2 }],
    bought: [turn, turn + 1],
    saga: ["RUN_FAILED", "no money"],
    settled: ["kept", "this fails", turn + 2],
    winner: "held",
    held: `held in turn ${turn}`,
    doubles: [2, 4, 6],
    chains: [
      [1, 2],
      [3, 4],
    ],
    begun: 20,
    timedOut: null,
    words: [`early ${turn}`, `late ${turn}`],
  };
}

export const everythingOutput: readonly TurnOutcome[] = Array.from({ length: turns }, (_, index) =>
  expectedTurn(index + 1),
);

/** As in the other workflows of this folder: workers die here all the time. */
const options = { version: 1, crashLimit: 1_000, retry: { attempts: 1 } } as const;

export function createEverything(world: World): readonly Workflow[] {
  const doubling: Doubling = workflow({ ...options, name: "everything-double" }, async (ctx, n: number) =>
    ctx.step("double", (step) => act(world, ctx.run.id, step, 2 * n)),
  );
  const failing = createFailing(world);
  const reserving = createReserving(world);
  return [createLoop(world, doubling, failing, reserving), doubling, failing, reserving];
}

/** Leaves its mark under the step's own key, half before and half after the place where a process may die. Goes first. */
async function act<T>(
  world: World,
  runId: string,
  { idempotencyKey }: Pick<StepContext, "idempotencyKey">,
  result: T,
  prefix = "",
): Promise<T> {
  const line = await world.ledger.begin(runId, prefix + idempotencyKey.slice(runId.length + 1));
  world.pass("step.inside");
  await line.end();
  return result;
}

function createLoop(world: World, doubling: Doubling, failing: Undone, reserving: Undone): Everything {
  return workflow(
    { ...options, name: "everything" },
    async (ctx, { queue, turn, done }: EverythingInput): Promise<readonly TurnOutcome[]> => {
      const runId = ctx.run.id;
      const at = { queue };
      ctx.onUpdate("add", (n: number, inner) =>
        inner.step("add", (step) => act(world, runId, step, 100 + n)),
      );
      const out = ctx.stream<string>("tale");
      await out.write("begin");

      const isPatched = ctx.patch("greeting");
      await ctx.step(isPatched ? "greet-anew" : "greet", (step) => act(world, runId, step, "hello"));
      const begun = await ctx.start(doubling, 10, at);

      const pages = await ctx.step("fetch", (step) => fetch(world, runId, step, turn), {
        retry: { attempts: 20, initial: 10, backoff: "fixed" },
        timeout: "1s",
      });

      const bought = [
        await ctx.transaction("buy", (tx, step) => buy(world, runId, tx, step, turn)),
        await ctx.transaction("buy", (tx, step) => buy(world, runId, tx, step, turn + 1), {
          on: world.foreign,
        }),
      ];

      let saga: readonly unknown[] = [];
      try {
        await ctx.call(failing, { turn }, at);
      } catch (error) {
        const { code, cause } = error as PawlError;
        saga = [code, (cause as Error).message];
      }

      const settled = await Promise.allSettled([
        ctx.step("keep", (step) => act(world, runId, step, "kept")),
        ctx.step("fail", async (step) => {
          await act(world, runId, step, null);
          throw new Error("this fails");
        }),
        ctx.transaction("buy", (tx, step) => buy(world, runId, tx, step, turn + 2)),
      ]);

      const race = await ctx.race({
        held: ctx.waitForSignal("held"),
        late: ctx.sleep("1h"),
        reserved: ctx.call(reserving, { turn }, at),
        stalled: ctx.step("stall", async (step) => {
          await act(world, runId, step, null);
          return new Promise<never>((_, reject) =>
            step.signal.addEventListener("abort", () => reject(new Error("stalled"))),
          );
        }),
      });

      const tell = ctx.step("tell", async (step) => {
        await act(world, runId, step, null);
        for (let n = 1; n <= 3; n++) {
          await step.stream<string>("tale").write(`word ${n}`);
          world.pass("step.inside");
        }
      });
      const doubles = await ctx.map("each", [1, 2, 3], (n, inner) => inner.call(doubling, n, at), {
        concurrency: 2,
      });
      await tell;
      await out.write("end");
      await out.close();

      const chains = await Promise.all(
        [1, 3].map((first) =>
          ctx.scope(`chain-${first}`, async (inner) => {
            const one = await inner.step("link", (step) => act(world, runId, step, first));
            if (first === 1) await inner.sleep(15);
            return [one, await inner.step("link", (step) => act(world, runId, step, first + 1))];
          }),
        ),
      );

      const early = await ctx.waitForSignal<string>("early");
      await ctx.sleepUntil(ctx.now() + 20);
      const timedOut = await ctx.waitForSignal<null>("never", { timeout: 20 });
      await ctx.publish("stage", `waits in turn ${turn}`);
      const late = await ctx.waitForSignal<string>("late");

      const outcome: TurnOutcome = {
        isPatched,
        pages,
        bought,
        saga,
        settled: settled.map((each) =>
          each.status === "fulfilled" ? each.value : (each.reason as Error).message,
        ),
        winner: race.winner,
        held: race.value,
        doubles,
        chains,
        begun: await begun.result(),
        timedOut,
        words: [early, late],
      };
      if (turn < turns) return ctx.continueAs({ queue, turn: turn + 1, done: [...done, outcome] });
      return [...done, outcome];
    },
  );
}

/** Fails once, and in the first turn hangs once; each attempt hears how far the one before it came. */
async function fetch(world: World, runId: string, step: StepContext, turn: number): Promise<unknown> {
  const progress = step.progress as { readonly page: number }[] | undefined;
  if (progress === undefined) {
    step.heartbeat([{ page: 1 }]);
    await act(world, runId, step, null);
    throw new Error("the first page only");
  }
  if (progress.length === 1) {
    step.heartbeat([...progress, { page: 2 }]);
    if (turn === 1) return new Promise<never>(() => {});
  }
  return act(world, runId, step, [progress[0], progress[1] ?? { page: 2 }]);
}

async function buy(
  world: World,
  runId: string,
  tx: unknown,
  step: StepContext,
  price: number,
): Promise<number> {
  const key = step.idempotencyKey.slice(runId.length + 1);
  await act(world, runId, step, null);
  await (tx as Transaction).query("insert into public.purchase (run_id, step, pid) values ($1, $2, $3)", [
    runId,
    key,
    process.pid,
  ]);
  world.pass("transaction.inside");
  return price;
}

/** Is undone, since it fails. */
function createFailing(world: World): Undone {
  return workflow({ ...options, name: "everything-saga" }, async (ctx): Promise<never> => {
    for (const name of ["reserve", "charge"])
      await ctx.step(name, (step) => act(world, ctx.run.id, step, name), {
        undo: (_, step) => act(world, ctx.run.id, step, null, "undo "),
      });
    throw new NonRetryableError("no money");
  });
}

/** Tells its parent once it holds something, and then waits to be cancelled, and undone. */
function createReserving(world: World): Undone {
  return workflow({ ...options, name: "everything-reserve" }, async (ctx, { turn }): Promise<never> => {
    await ctx.step("reserve", (step) => act(world, ctx.run.id, step, "reserved"), {
      undo: (_, step) => act(world, ctx.run.id, step, null, "undo "),
    });
    const { parentId } = ctx.run;
    await ctx.step(
      "announce",
      async (step) => {
        await act(world, ctx.run.id, step, null);
        await world.tell(parentId!, "held", `held in turn ${turn}`, `held ${turn}`);
      },
      { retry: { attempts: 100, initial: 100, backoff: "fixed" } },
    );
    await ctx.sleep("1h");
    throw await pause(0, new Error("nobody cancelled it"));
  });
}
