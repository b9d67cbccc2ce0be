import { expect, test } from "vitest";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

const nap = workflow({ name: "nap", version: 1 }, async (ctx) => {
  await ctx.sleep("1h");
  return ctx.now();
});
const other = workflow({ name: "other", version: 1 }, async () => 1);
const busy = workflow({ name: "busy", version: 1 }, async (ctx) =>
  ctx.step("wait", () => new Promise<void>(() => {})),
);
function counted(world: ManualWorld, old: boolean) {
  const looks: { at: number; limit: number; woken: number; held: number; hasMore: boolean }[] = [];
  const store: Store = {
    ...world.store,
    async wakeDue(limit, waker) {
      await new Promise((r) => setImmediate(r));
      const a = old ? await world.store.wakeDue(500) : await world.store.wakeDue(limit, waker);
      looks.push({
        at: world.clock.now() - Date.UTC(2026, 0, 1),
        limit: old ? 500 : limit,
        woken: a.woken,
        held: a.held.length,
        hasMore: a.hasMore,
      });
      if (looks.length > 3000) return new Promise(() => {});
      return a;
    },
  };
  return { looks, store };
}

test.for([false, true])(
  "T1 one free slot, 100 naps due; old=%s",
  async (old) => {
    const world = createManualWorld();
    const { looks, store } = counted(world, old);
    const runs = await Promise.all(Array.from({ length: 100 }, () => world.client.start(nap)));
    await world.worker({ workflows: [nap, busy], concurrency: 10 }, { store }).start();
    await world.advance("10m");
    await world.client.startMany(
      busy,
      Array.from({ length: 9 }, () => ({})),
    );
    await world.advance("49m");
    await world.advance("55s");
    looks.length = 0;
    const done = async () =>
      (await Promise.all(runs.map((r) => r.status()))).filter((s) => s === "completed").length;
    let out = "";
    for (let s = 0; s < 40; s++) {
      await world.advance("1s");
      out += ` ${await done()}`;
    }
    console.log(
      "T1 old=",
      old,
      "completed per second:",
      out,
      "looks",
      looks.length,
      JSON.stringify(looks.slice(0, 12)),
    );
  },
  30000,
);

test("T2 idle worker, another's run is due", async () => {
  const world = createManualWorld();
  const { looks, store } = counted(world, false);
  await world.worker({ workflows: [nap] }, { store }).start();
  await world.client.start(other, undefined as never, { delay: "10m" } as never);
  await world.advance("9m");
  console.log(
    "T2 before",
    world.lines.filter((l) => l.level !== "debug").map((l) => l.message),
  );
  await world.advance("3m");
  console.log(
    "T2 after",
    world.lines.filter((l) => l.level !== "debug").map((l) => l.message),
    looks.filter((l) => l.at > 590000 && l.at < 605000),
  );
});

test("T3 runUntilIdle, as many due for others as slots", async () => {
  const world = createManualWorld();
  const { looks, store } = counted(world, false);
  await Promise.all(
    Array.from({ length: 40 }, () =>
      world.client.start(other, undefined as never, { delay: "10m" } as never),
    ),
  );
  await world.advance("10m");
  const w = world.worker({ workflows: [nap], concurrency: 10 }, { store });
  let over = false;
  void w.runUntilIdle().then(() => {
    over = true;
  });
  for (let i = 0; i < 50; i++) await world.rest();
  console.log(
    "T3 looks without any time passing:",
    looks.length,
    "over",
    over,
    JSON.stringify(looks.slice(-2)),
  );
});

test.for([false, true])(
  "T4 one free slot, own run behind 60 of others that nobody takes; old=%s",
  async (old) => {
    const world = createManualWorld();
    const { looks, store } = counted(world, old);
    await world.worker({ workflows: [nap, busy], concurrency: 10 }, { store }).start();
    await world.client.startMany(
      busy,
      Array.from({ length: 9 }, () => ({})),
    );
    await world.advance("1m");
    await Promise.all(
      Array.from({ length: 60 }, () =>
        world.client.start(other, undefined as never, { delay: "1h" } as never),
      ),
    );
    await world.advance("1s");
    const run = await world.client.start(nap);
    await world.advance("59m");
    await world.advance("59s");
    looks.length = 0;
    let s = 0;
    for (; s < 200 && (await run.status()) !== "completed"; s++) await world.advance("200ms");
    console.log(
      "T4 old=",
      old,
      "late by about ms",
      s * 200 - 1000,
      "looks",
      looks.length,
      JSON.stringify(looks.slice(0, 10)),
    );
  },
  30000,
);
