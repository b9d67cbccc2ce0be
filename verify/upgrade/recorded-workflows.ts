import { NonRetryableError, workflow, type Workflow } from "../../packages/pawl/src/index.ts";

/** Is called inside every step, undo and transaction: replay must call it never. */
export type Act = (step: string) => void;

/** What the stored histories are histories of. Once released none of them is changed: another is added. */
export function createRecordedWorkflows(act: Act): readonly Workflow[] {
  return [createSteps(act), createWaits(act), createChild(act), createFamily(act), createFailing(act)];
}

/** Results of all shapes, retries, parallel branches, maps and scopes, and chance. */
function createSteps(act: Act): Workflow {
  return workflow({ name: "recorded-steps", version: 1 }, async (ctx) => {
    let calls = 0;
    const rich = await ctx.step("rich", () => {
      act("rich");
      return { at: new Date(0), map: new Map([["a", 1n]]), none: undefined, minus: -0 };
    });
    const flaky = await ctx.step(
      "flaky",
      () => {
        act("flaky");
        if (++calls < 3) throw new Error("not yet");
        return calls;
      },
      { retry: { attempts: 5, initial: 5 } },
    );
    const caught = await ctx
      .step("hopeless", () => {
        act("hopeless");
        throw new NonRetryableError("never");
      })
      .catch((error: unknown) => (error as Error).message);
    const pair = await Promise.all([2, 1].map((n) => ctx.step("pair", () => (act("pair"), n))));
    const doubles = await ctx.map("double", [1, 2, 3], (n, inner) =>
      inner.step("double", () => (act("double"), 2 * n)),
    );
    const scoped = await ctx.scope("corner", (inner) => inner.step("rich", () => (act("corner"), "corner")));
    const isPatched = ctx.patch("recorded");
    const bought = await ctx.transaction("buy", async () => (act("buy"), "bought"));
    const isRich = rich.map.get("a") === 1n && Object.is(rich.minus, -0) && rich.at.getTime() === 0;
    return {
      isRich,
      flaky,
      caught,
      pair,
      doubles,
      scoped,
      isPatched,
      bought,
      lot: [ctx.random(), ctx.uuid()],
    };
  });
}

/** Timers, signals, races and their losers, updates, values shown to others. */
function createWaits(act: Act): Workflow {
  return workflow({ name: "recorded-waits", version: 1 }, async (ctx) => {
    const asked: number[] = [];
    ctx.onUpdate("ask", async (n: number, inner) => {
      asked.push(n);
      return inner.step("answer", () => (act("answer"), n + 1));
    });
    await ctx.sleep(20);
    const early = await ctx.waitForSignal<string>("word");
    const nothing = await ctx.waitForSignal("never", { timeout: 20 });
    const race = await ctx.race({
      word: ctx.waitForSignal<string>("word"),
      late: ctx.sleep("1h"),
      step: (inner) => inner.waitForSignal("other"),
    });
    await ctx.publish("stage", "nearly");
    const last = await ctx.waitForSignal<string>("end");
    return { early, nothing, race, last, asked, now: ctx.now() };
  });
}

function createChild(act: Act): Workflow<{ readonly fails: boolean }, string> {
  return workflow(
    { name: "recorded-child", version: 1, retry: { attempts: 1 } },
    async (ctx, input: { readonly fails: boolean }) => {
      await ctx.step("work", () => act("child"));
      if (input.fails) throw new Error("the child fails");
      return "child";
    },
  );
}

/** Children: called, started, and failed. */
function createFamily(act: Act): Workflow {
  return workflow({ name: "recorded-family", version: 1 }, async (ctx) => {
    const child = createChild(act);
    const called = await ctx.call(child, { fails: false });
    const started = await ctx.start(child, { fails: false });
    const failed = await ctx.call(child, { fails: true }).catch((error: unknown) => (error as Error).name);
    return { called, started: await started.result(), failed };
  });
}

/** Its first attempt fails; the second goes on with what is recorded. */
function createFailing(act: Act): Workflow {
  return workflow(
    { name: "recorded-attempts", version: 1, retry: { attempts: 3, initial: 5 } },
    async (ctx) => {
      const first = await ctx.step("first", () => (act("first"), 1));
      if (ctx.run.attempt === 1) throw new Error("once");
      return { first, second: await ctx.step("second", () => (act("second"), 2)) };
    },
  );
}
