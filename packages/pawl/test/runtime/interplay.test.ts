import { describe, expect, test } from "vitest";
import type { Payload } from "../../src/core/json.ts";
import type { CompletionId, Transactor } from "../../src/core/transactor.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { clientOf } from "./client-of.ts";
import { createEngine, type Engine } from "./engine.ts";
import { createGate } from "./gate.ts";

const once = { version: 1, retry: { attempts: 1 } } as const;

describe("a fork", () => {
  test("does again what was undone in its source", async () => {
    const engine = createEngine();
    const done: string[] = [];
    let isBroken = true;
    const trip = workflow({ ...once, name: "trip" }, async (ctx) => {
      await ctx.step("look", () => void done.push("look"));
      await ctx.step("flight", () => void done.push("flight"), { undo: () => void done.push("undo flight") });
      await ctx.step("hotel", () => void done.push("hotel"));
      await ctx.step("pay", () => {
        if (isBroken) throw new Error("no money");
        done.push("pay");
      });
    });
    const source = await engine.start(trip);
    expect((await engine.end(source)).status).toBe("failed");
    isBroken = false;
    const { id } = await clientOf(engine).fork(source, { from: "pay" });
    expect((await engine.end(id)).status).toBe("completed");
    expect(done).toEqual(["look", "flight", "hotel", "undo flight", "flight", "pay"]);
  });

  test("joins a child that its source had started and not joined", async () => {
    const engine = createEngine();
    const child = workflow({ ...once, name: "child" }, async (ctx) => {
      await ctx.sleep("1h");
      return "of the child";
    });
    const parent = workflow({ ...once, name: "parent" }, async (ctx) => {
      const handle = await ctx.start(child);
      await ctx.step("beside", () => 1);
      return handle.result();
    });
    engine.register(child);
    const source = await engine.start(parent);
    await engine.end(source);
    const { id } = await clientOf(engine).fork(source, { from: "beside" });
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toBe("of the child");
  });
  test("joins a child that still runs", async () => {
    const engine = createEngine();
    const child = workflow({ ...once, name: "child" }, async (ctx) => {
      await ctx.sleep("1h");
      return "of the child";
    });
    const parent = workflow({ ...once, name: "parent" }, async (ctx) => {
      const handle = await ctx.start(child);
      await ctx.step("beside", () => 1);
      return handle.result();
    });
    engine.register(child);
    const source = await engine.start(parent);
    await engine.idle();
    const { id } = await clientOf(engine).fork(source, { from: "beside" });
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toBe("of the child");
  });
});

describe("continueAs", () => {
  test("is refused in the handler of an update", async () => {
    const engine = createEngine();
    const loop = workflow({ ...once, name: "loop" }, async (ctx, n: number) => {
      ctx.onUpdate("again", async (_, inner) => inner.continueAs(n + 1));
      await ctx.waitForSignal("stop");
      return n;
    });
    const id = await engine.start(loop, 1);
    await engine.idle();
    await engine.tell(id, "update:again");
    await engine.idle();
    await engine.tell(id, "signal:stop");
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.output(id)).toBe(1);
  });
  test("does nothing in a branch that has lost its race", async () => {
    const engine = createEngine();
    const loop = workflow({ ...once, name: "loop" }, async (ctx) => {
      const { winner } = await ctx.race({
        slow: async (inner) => {
          await inner.sleep("1d").catch(() => {});
          return inner.continueAs();
        },
        fast: ctx.sleep("1s"),
      });
      await ctx.step("after", () => 1);
      return winner;
    });
    const id = await engine.start(loop);
    expect(await engine.end(id)).toMatchObject({ status: "completed" });
    expect(await engine.output(id)).toBe("fast");
  });
});

describe("streams", () => {
  test("an attempt that has timed out writes no more to a stream", async () => {
    const engine = createEngine();
    const late: unknown[] = [];
    const talk = workflow({ ...once, name: "talk" }, async (ctx) => {
      await ctx.step(
        "speak",
        async ({ stream, attempt }) => {
          await stream("words").write(`begin ${attempt}`);
          await engine.delay(attempt === 1 ? 3_000 : 900);
          await stream("words")
            .write(`end ${attempt}`)
            .catch((error: unknown) => {
              late.push(error);
              throw error;
            });
        },
        { timeout: "1s", retry: { attempts: 2, initial: "1ms" } },
      );
      await ctx.step("wait", () => engine.delay(10_000));
    });
    const id = await engine.start(talk);
    await engine.end(id);
    const page = await engine.store.readStream({ runId: id, name: "words", after: 0 }, 10);
    expect(page?.items.map(({ data }) => data?.json)).toEqual(['"begin 1"', '"begin 2"', '"end 2"']);
    expect(late).toMatchObject([{ code: "STEP_ENDED" }]);
  });
});

describe("failures", () => {
  test("a crash while a run is undone does not change what a retry sets aside", async () => {
    const results: unknown[] = [];
    for (const crashes of [false, true]) {
      let hasCrashed = !crashes;
      const engine = createEngine();
      const called: string[] = [];
      const failing = workflow({ ...once, name: "failing", crashLimit: 10 }, async (ctx) => {
        await ctx.step("base", () => 1, {
          undo: async () => {
            if (hasCrashed) return;
            hasCrashed = true;
            void engine.crash();
            await new Promise(() => {});
          },
        });
        const fail = (name: string) =>
          ctx.step(name, () => {
            called.push(name);
            throw new Error(name);
          });
        const settled = await Promise.allSettled([fail("a"), fail("b")]);
        const [, b] = settled;
        if (b.status === "rejected") throw b.reason;
      });
      const id = await engine.start(failing);
      await engine.end(id);
      called.length = 0;
      await clientOf(engine).retry(id);
      await engine.end(id);
      results.push([...called]);
    }
    expect(results[1]).toEqual(results[0]);
  });

  test("a step that waits for its next attempt has a new budget in the run's next attempt", async () => {
    const engine = createEngine();
    let calls = 0;
    const retry = { attempts: 3, initial: "1m", max: "1m", jitter: false } as const;
    const flaky = workflow(
      { name: "flaky", version: 1, retry: { attempts: 2, initial: "1s" } },
      async (ctx) => {
        const trying = ctx.step(
          "flaky",
          () => {
            calls += 1;
            if (calls < 5) throw new Error(`no ${calls}`);
            return calls;
          },
          { retry },
        );
        if (ctx.run.attempt === 1) {
          await ctx.sleep("90s");
          throw new Error("the attempt fails");
        }
        return trying;
      },
    );
    const id = await engine.start(flaky);
    const { status } = await engine.end(id);
    expect([status, calls]).toEqual(["completed", 5]);
  });
});

/** A database that runs do not live in, as far as one step needs it: one list of what was written. */
function createLedger(): { readonly on: Transactor<string[]>; readonly written: string[] } {
  const written: string[] = [];
  let rows = new Map<string, { readonly token: string; readonly result?: Payload | null }>();
  const keyOf = ({ runId, step }: CompletionId): string => `${runId} ${step}`;
  let open = rows;
  const on: Transactor<string[]> = {
    isForeign: true,
    checksCommit: true,
    async begin(work) {
      const tx: string[] = [];
      open = new Map(rows);
      const answer = await work(tx, { query: async () => ({ rows: [] }) });
      rows = open;
      written.push(...tx);
      return answer;
    },
    completions: {
      async takeOver(_, id) {
        const row = open.get(keyOf(id));
        if (row?.result !== undefined) return { state: "completed", result: row.result };
        open.set(keyOf(id), { token: id.token });
        return { state: "open" };
      },
      async complete(_, id, isFirst, result) {
        if (isFirst ? open.has(keyOf(id)) : open.get(keyOf(id))?.token !== id.token) return false;
        open.set(keyOf(id), { token: id.token, result });
        return true;
      },
    },
  };
  return { on, written };
}

describe("a transaction in another database", () => {
  test("is carried out again by a run that is retried from its start", async () => {
    const engine = createEngine();
    const { on, written } = createLedger();
    let price = 1;
    const sell = workflow({ ...once, name: "sell" }, async (ctx) =>
      ctx.transaction("record", (tx) => (tx.push(`for ${price}`), price), { on }),
    );
    const id = await engine.start(sell);
    await engine.end(id);
    price = 2;
    await clientOf(engine).retry(id, { from: "start" });
    await engine.end(id);
    expect(await engine.output(id)).toBe(2);
    expect(written).toEqual(["for 1", "for 2"]);
  });

  test("does not commit once it was given up", async () => {
    const engine = createEngine();
    const { on, written } = createLedger();
    const sell = workflow({ ...once, name: "sell" }, async (ctx) =>
      ctx.transaction(
        "record",
        async (tx) => {
          await engine.delay(120_000);
          tx.push("too late");
        },
        { on },
      ),
    );
    const id = await engine.start(sell);
    await engine.idle();
    await engine.tell(id, "cancel");
    expect((await engine.end(id)).status).toBe("cancelled");
    await engine.pass(200_000);
    expect(written).toEqual([]);
  });
});

describe("a step that lost its race before it was called", () => {
  test("has not happened: it is not undone", async () => {
    const engine = createEngine();
    const seen: string[] = [];
    const rush = workflow({ ...once, name: "rush" }, async (ctx) => {
      await ctx.race({
        slow: ctx.step("slow", () => void seen.push("slow"), { undo: () => void seen.push("undo slow") }),
        fast: (inner) => inner.publish("at once", 1),
      });
      await ctx.sleep("1s");
      throw new Error("no");
    });
    const id = await engine.start(rush);
    await engine.end(id);
    expect(seen).toEqual([]);
  });
});

describe("a step that was undone", () => {
  test("is another effect when the run is retried: it has another idempotency key", async () => {
    const engine = createEngine();
    const keys: string[] = [];
    let isBroken = true;
    const trip = workflow({ ...once, name: "trip" }, async (ctx) => {
      await ctx.step(
        "book",
        ({ idempotencyKey }) => {
          keys.push(idempotencyKey);
        },
        { undo: (_, { idempotencyKey }) => void keys.push(`undo ${idempotencyKey}`) },
      );
      await ctx.step("keep", ({ idempotencyKey }) => {
        if (isBroken) throw new Error("no");
        keys.push(idempotencyKey);
      });
      if (keys.length < 5) throw new Error("no");
    });
    const id = await engine.start(trip);
    await engine.end(id);
    expect(keys).toEqual([`${id}/book`, `undo ${id}/book`]);
    isBroken = false;
    await clientOf(engine).retry(id);
    await engine.end(id);
    const [, , second] = keys;
    expect(second).not.toBe(`${id}/book`);
    expect(keys.slice(2)).toEqual([second, `${id}/keep`, `undo ${second}`]);
    await clientOf(engine).retry(id, { from: "start" });
    await engine.end(id);
    expect(new Set(keys.slice(0, 6)).size).toBe(6);
    expect(keys.at(-1)).toBe(`${id}/keep`);
  });
});

describe("a race", () => {
  test("with a branch that cannot be one leaves no wait behind", async () => {
    const engine = createEngine();
    const mistaken = workflow({ ...once, name: "mistaken" }, async (ctx) => {
      await ctx.race({ first: ctx.waitForSignal("go"), second: Promise.resolve(1) }).catch(() => {});
      return ctx.waitForSignal("go");
    });
    const id = await engine.start(mistaken);
    await engine.idle();
    await engine.tell(id, "signal:go", "taken");
    await engine.end(id);
    expect(await engine.output(id)).toBe("taken");
  });

  test("takes what publishing and writing return as branches", async () => {
    const engine = createEngine();
    const showing = workflow({ ...once, name: "showing" }, async (ctx) => {
      const { winner: first } = await ctx.race({ shown: ctx.publish("a", 1), late: ctx.sleep("1d") });
      const { winner: second } = await ctx.race({ written: ctx.stream("a").write(1), late: ctx.sleep("1d") });
      return [first, second];
    });
    const id = await engine.start(showing);
    await engine.end(id);
    expect(await engine.output(id)).toEqual(["shown", "written"]);
  });

  test("that is over leaves the updates of its losers to other handlers", async () => {
    const engine = createEngine();
    const registering = workflow({ ...once, name: "registering" }, async (ctx) => {
      await ctx.race({
        slow: async (inner) => {
          inner.onUpdate("poke", () => "slow");
          await inner.sleep("1d");
        },
        fast: ctx.sleep("1s"),
      });
      ctx.onUpdate("poke", () => "after");
      await ctx.waitForSignal("stop");
    });
    const id = await engine.start(registering);
    await engine.pass(2_000);
    await engine.tell(id, "update:poke");
    await engine.idle();
    await engine.tell(id, "signal:stop");
    expect((await engine.end(id)).status).toBe("completed");
    expect(await engine.facts(id)).toContain("update_answered update:poke");
  });
});

describe("code that is kept while its run is parked", () => {
  test("a patch that code comes to while it is parked does not go unrecorded", async () => {
    const engine = createEngine({ isSticky: true });
    const gate = createGate();
    const straying = workflow({ ...once, name: "straying" }, async (ctx) => {
      const waiting = ctx.waitForSignal("go");
      await gate.opened;
      const isNew = ctx.patch("new");
      await waiting;
      return ctx.step(isNew ? "new" : "old", () => 1);
    });
    const id = await engine.start(straying);
    await engine.pass(10_000);
    gate.open();
    await engine.idle();
    await engine.tell(id, "signal:go");
    await engine.end(id);
    const facts = await engine.facts(id);
    expect(facts.includes("patched new")).toBe(facts.includes("step_completed new"));
  });

  test("a run whose deadline passes while it is parked is told so, and undone", async () => {
    const engine = createEngine({ isSticky: true });
    const seen: string[] = [];
    const late = workflow({ ...once, name: "late" }, async (ctx) => {
      await ctx.step("do", () => 1, { undo: () => void seen.push("undone") });
      try {
        await ctx.waitForSignal("never");
      } finally {
        seen.push("finally");
      }
    });
    const id = await engine.start(late, undefined, { deadlineAt: engine.clock.now() + 60_000 });
    expect((await engine.end(id)).status).toBe("timed_out");
    expect(seen).toEqual(["finally", "undone"]);
  });

  test("undoing goes on after a long pause between attempts, paused and resumed meanwhile", async () => {
    for (const isSticky of [false, true]) {
      const engine = createEngine({ isSticky });
      const seen: number[] = [];
      const failing = workflow({ ...once, name: "failing" }, async (ctx) => {
        await ctx.step("do", () => 1, {
          undo: (_, { attempt }) => {
            seen.push(attempt);
            if (attempt < 3) throw new Error("not yet");
          },
          undoRetry: { attempts: 5, delays: ["1m"], jitter: false },
        });
        throw new Error("no");
      });
      const id = await engine.start(failing);
      await engine.pass(1_000);
      await engine.tell(id, "pause");
      await engine.pass(200_000);
      expect(seen).toEqual([1]);
      await engine.tell(id, "resume");
      expect((await engine.end(id)).status).toBe("failed");
      expect(seen).toEqual([1, 2, 3]);
    }
  });
});

describe("a run that returns while a transaction commits", () => {
  test("ends with its last fact, whatever a forgotten step brings in meanwhile", async () => {
    const commit = createGate();
    const enter = createGate();
    let isSecondDone = false;
    const engine: Engine = createEngine({
      probe(point) {
        if (point === "record.before" && isSecondDone) enter.open();
      },
      deps: {
        transactions: {
          own: {
            isForeign: false,
            checksCommit: true,
            completions: createLedger().on.completions,
            async begin(work) {
              const answer = await work({} as never, { query: async () => ({ rows: [] }) });
              await commit.opened;
              return answer;
            },
          },
          open: async () => "open",
          async record(_tx, _token, lease, { patches, fact }) {
            const events = [...patches, fact];
            const { told, now } = await engine.store.record({ lease, events, children: [] });
            return { told, now };
          },
        },
      },
    });
    const forgotten = createGate();
    const hasty = workflow({ ...once, name: "hasty" }, async (ctx) => {
      void ctx.step("forgotten", () => forgotten.opened);
      const awaited = ctx.step("awaited", () => 1);
      void ctx.transaction("kept", () => enter.opened);
      await awaited;
      await ctx.step("second", () => {
        isSecondDone = true;
      });
    });
    const id = await engine.start(hasty);
    await engine.idle();
    forgotten.open();
    await engine.idle();
    commit.open();
    await engine.end(id);
    expect((await engine.facts(id)).slice(-2)).toEqual(["step_completed kept", "completed"]);
  });
});

describe("the memory that a parked run holds on to", () => {
  test("counts its input", async () => {
    const engine = createEngine();
    const waiting = workflow({ ...once, name: "waiting" }, (ctx, _input: string) => ctx.waitForSignal("go"));
    await engine.start(waiting, "x".repeat(100_000));
    await engine.pass(1_000);
    expect(engine.executions[0]?.bytes()).toBeGreaterThan(100_000);
  });
});

describe("updates and attempts", () => {
  test("an update whose handler was cut short by a failed attempt is answered once, by the next", async () => {
    for (const isSticky of [false, true]) {
      const engine = createEngine({ isSticky });
      const calls: string[] = [];
      const busy = workflow(
        { name: "busy", version: 1, retry: { attempts: 2, initial: "1s" } },
        async (ctx) => {
          ctx.onUpdate("add", async (n, inner) => {
            await inner.step("first", () => void calls.push("first"));
            await inner.sleep("1m");
            await inner.step("second", () => void calls.push("second"));
            return n;
          });
          await ctx.sleep("10s");
          if (ctx.run.attempt === 1) throw new Error("no");
          await ctx.sleep("1h");
        },
      );
      const id = await engine.start(busy);
      await engine.idle();
      await engine.tell(id, "update:add", 1);
      await engine.idle();
      expect((await engine.end(id)).status).toBe("completed");
      expect(calls).toEqual(["first", "second"]);
      const facts = await engine.facts(id);
      expect(facts.filter((fact) => fact.startsWith("update_"))).toEqual([
        "update_received update:add",
        "update_answered update:add",
      ]);
    }
  });
  test("a cancelled run refuses what its handler asks for", async () => {
    const engine = createEngine({ isSticky: true });
    const seen: string[] = [];
    const busy = workflow({ ...once, name: "busy" }, async (ctx) => {
      ctx.onUpdate("add", async (_, inner) => {
        await inner.sleep("1m").catch((error: unknown) => void seen.push((error as { code: string }).code));
      });
      await ctx.waitForSignal("never");
    });
    const id = await engine.start(busy);
    await engine.idle();
    await engine.tell(id, "update:add", 1);
    await engine.idle();
    await engine.tell(id, "cancel");
    expect((await engine.end(id)).status).toBe("cancelled");
    expect(seen).toEqual(["RUN_CANCELLED"]);
  });
  test("an update that a paused run is sent is answered once it is resumed", async () => {
    const engine = createEngine({ isSticky: true });
    const busy = workflow({ ...once, name: "busy" }, async (ctx) => {
      ctx.onUpdate("add", (n) => n);
      await ctx.waitForSignal("stop");
    });
    const id = await engine.start(busy);
    await engine.idle();
    await engine.tell(id, "pause");
    await engine.idle();
    await engine.tell(id, "update:add", 1);
    await engine.pass(60_000);
    expect(await engine.facts(id)).toEqual(["paused"]);
    await engine.tell(id, "resume");
    await engine.idle();
    expect(await engine.facts(id)).toContain("update_answered update:add");
  });
});
