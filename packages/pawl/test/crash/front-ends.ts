import { z } from "zod";
import { dag, machine, ref, workflow, type Graph, type Workflow } from "../../src/index.ts";
import { crashLimit, work } from "./work.ts";
import type { World } from "./world.ts";

// A graph and a machine.

const Freight = z.object({ stepMs: z.number() });
type Freight = z.infer<typeof Freight>;

type Convoy = Workflow<Freight, string>;
type Parcel = Workflow<Freight, readonly string[]>;

export const convoy = ref<Convoy>("convoy", 1);
export const parcel = ref<Parcel>("parcel", 1);

/** The nodes of a convoy, and what it returns. */
export const convoyNodes = ["load", "drive-1", "drive-2", "drive-3", "unload"] as const;
export const convoyOutput = "unload(drive-1(load()),drive-2(load()),drive-3(load()))";
/** Where a parcel comes by. */
export const parcelWay = ["packed", "stamped", "handed over"] as const;

interface Leg extends Freight {
  readonly name: string;
  readonly after: readonly string[];
}

export function createFrontEnds({ ledger }: World): readonly Workflow[] {
  const leg = workflow({ name: "leg", version: 1, crashLimit }, async (ctx, { stepMs, name, after }: Leg) =>
    ctx.step(name, () => work(ledger, ctx.run.id, name, stepMs, `${name}(${after.join(",")})`)),
  );
  const convoy = dag({ name: "convoy", version: 1, crashLimit }, (g: Graph<Freight>) => {
    const { stepMs } = g.input;
    const load = g.node("load", leg, { stepMs, name: "load", after: [] });
    const drives = ["drive-1", "drive-2", "drive-3"].map((name) =>
      g.node(name, leg, { stepMs, name, after: [load] }),
    );
    return g.node("unload", leg, { stepMs, name: "unload", after: drives });
  });
  /** Handlers know their run by the key of their step. */
  const handle = (key: string, step: string, { stepMs }: Freight, stage: string): Promise<string> =>
    work(ledger, key.slice(0, 36), step, stepMs, stage);
  const parcel = machine({
    name: "parcel",
    version: 1,
    crashLimit,
    start: "pack",
    input: Freight,
    state: z.object({ way: z.array(z.string()) }),
    output: z.array(z.string()),
    steps: {
      pack: {
        run: async ({ input, idempotencyKey, step, next }) =>
          next("stamp", { way: [await handle(idempotencyKey, step, input, "packed")] }),
      },
      stamp: {
        run: async ({ input, idempotencyKey, step, state, now, sleepUntil }) =>
          sleepUntil(new Date(now + 50), "hand_over", {
            way: [...state.way, await handle(idempotencyKey, step, input, "stamped")],
          }),
      },
      hand_over: {
        run: async ({ input, idempotencyKey, step, state, complete }) =>
          complete([...state.way, await handle(idempotencyKey, step, input, "handed over")]),
      },
    },
  });
  return [convoy, leg, parcel];
}
