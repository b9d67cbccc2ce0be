import { describe, expect, test } from "vitest";
import type { PawlError } from "../../src/core/error.ts";
import type { RunId } from "../../src/core/ids.ts";
import type { StepOptions } from "../../src/runtime/step-options.ts";
import { workflow, type Workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type Engine } from "../runtime/engine.ts";
import { createGate } from "../runtime/gate.ts";

const options = { version: 1, crashLimit: 1_000, retry: { attempts: 1 } } as const;

/** What the world outside has seen: what was done under which key, and what was taken back. */
interface World {
  readonly done: string[];
  readonly undone: string[];
}

function createWorld(): World {
  return { done: [], undone: [] };
}

function doing<T>(world: World, name: string, result: T, more: StepOptions<T> = {}) {
  return {
    call: (): T => {
      world.done.push(name);
      return result;
    },
    options: {
      undo: (given: T, { inDoubt }: { readonly inDoubt: boolean }) => {
        world.undone.push(`${name}:${inDoubt ? "in doubt" : JSON.stringify(given)}`);
      },
      ...more,
    } satisfies StepOptions<T>,
  };
}

/** Books two things at once and a third after them, waits, and fails. */
function trip(world: World, ending: "fails" | "waits"): Workflow {
  return workflow({ ...options, name: "trip" }, async (ctx) => {
    const book = (name: string) => {
      const { call, options: stepOptions } = doing(world, name, { id: name });
      return ctx.step(name, call, stepOptions);
    };
    try {
      await Promise.all([book("flight"), book("hotel")]);
      await ctx.sleep("1h");
      await book("car");
      if (ending === "waits") await ctx.waitForSignal("never");
      throw new Error("no money");
    } finally {
      world.undone.push("finally");
    }
  });
}

async function endOf(engine: Engine, id: RunId): Promise<readonly [status: string, last: readonly string[]]> {
  const { status } = await engine.end(id);
  const facts = await engine.facts(id);
  return [status, facts.slice(facts.indexOf("undo_began"))];
}

describe("what a run did is undone, the last first", () => {
  test("when it fails for good", async () => {
    const engine = createEngine();
    const world = createWorld();
    const id = await engine.start(trip(world, "fails"));
    expect(await endOf(engine, id)).toEqual([
      "failed",
      ["undo_began", "undo_completed car", "undo_completed hotel", "undo_completed flight", "failed"],
    ]);
    expect(world.undone.filter((each) => each !== "finally")).toEqual([
      'car:{"id":"car"}',
      'hotel:{"id":"hotel"}',
      'flight:{"id":"flight"}',
    ]);
    // The code's own clean-up comes first.
    expect(world.undone.indexOf("finally")).toBe(0);
    const { error } = (await engine.store.getRun(id))!;
    expect(JSON.parse(error!.json)).toMatchObject({ message: "no money" });
  });

  test("when it is cancelled while it waits", async () => {
    const engine = createEngine();
    const world = createWorld();
    const id = await engine.start(trip(world, "waits"));
    await engine.pass(3_600_000);
    expect(engine.outcomes).toContain("parked");
    await engine.tell(id, "cancel", { reason: "enough" });
    const [status, facts] = await endOf(engine, id);
    expect([status, facts.at(-1)]).toEqual(["cancelled", "cancelled"]);
    expect(world.undone.slice(-3).map((each) => each.split(":")[0])).toEqual(["car", "hotel", "flight"]);
    expect(JSON.parse((await engine.store.getRun(id))!.error!.json)).toMatchObject({ message: "enough" });
  });

  test("when its time is over", async () => {
    const engine = createEngine();
    const world = createWorld();
    const deadlineAt = engine.clock.now() + 1_800_000;
    const id = await engine.start(trip(world, "waits"), undefined, { deadlineAt });
    expect((await endOf(engine, id))[0]).toBe("timed_out");
    expect(world.undone.slice(-2).map((each) => each.split(":")[0])).toEqual(["hotel", "flight"]);
  });

  test("but only after its last attempt", async () => {
    const engine = createEngine();
    const world = createWorld();
    const tested = workflow(
      { ...options, name: "tested", retry: { attempts: 2, initial: "1m" } },
      async (ctx) => {
        const { call, options: stepOptions } = doing(world, "book", 1);
        await ctx.step("book", call, stepOptions);
        throw new Error("no");
      },
    );
    const id = await engine.start(tested);
    await engine.pass(1_000);
    expect(world).toEqual({ done: ["book"], undone: [] });
    await engine.end(id);
    expect(world).toEqual({ done: ["book"], undone: ["book:1"] });
  });

  test("when it is cancelled between two attempts", async () => {
    const engine = createEngine();
    const world = createWorld();
    const tested = workflow(
      { ...options, name: "tested", retry: { attempts: 2, initial: "1h" } },
      async (ctx) => {
        const { call, options: stepOptions } = doing(world, "book", 1);
        await ctx.step("book", call, stepOptions);
        await ctx.step("pay", () => Promise.reject(new Error("no")));
      },
    );
    const id = await engine.start(tested);
    await engine.pass(1_000);
    await engine.tell(id, "cancel");
    await engine.idle();
    expect([(await engine.store.getRun(id))?.status, world]).toEqual([
      "cancelled",
      { done: ["book"], undone: ["book:1"] },
    ]);
  });

  test("but not when it completes, nor a step that failed by itself", async () => {
    const engine = createEngine();
    const world = createWorld();
    const tested = workflow({ ...options, name: "tested" }, async (ctx, fails: boolean) => {
      const { call, options: stepOptions } = doing(world, "book", 1);
      await ctx.step("book", call, stepOptions);
      const no = (): never => {
        throw new Error("refused");
      };
      await ctx.step("pay", no, { undo: () => world.undone.push("pay") }).catch(() => {});
      if (fails) throw new Error("no");
    });
    const good = await engine.start(tested, false);
    expect((await engine.end(good)).status).toBe("completed");
    expect(world.undone).toEqual([]);
    const bad = await engine.start(tested, true);
    expect((await engine.end(bad)).status).toBe("failed");
    expect(world.undone).toEqual(["book:1"]);
  });
});

describe("wherever a worker dies", () => {
  const explore = async (scenario: (engine: Engine, world: World) => Promise<RunId>) => {
    const still = createEngine();
    const stillWorld = createWorld();
    const stillEnd = await endOf(still, await scenario(still, stillWorld));
    for (let write = 1; write <= still.writes(); write++) {
      for (const at of ["before", "after"] as const) {
        const crash = `crash ${at} write ${write}`;
        const engine = createEngine({ crashAt: (call, when) => call === write && when === at });
        const world = createWorld();
        const id = await scenario(engine, world);
        const [status, facts] = await endOf(engine, id);
        const essential = facts.filter((fact) => fact !== "attempt_crashed");
        expect([crash, status, ...essential]).toEqual([crash, stillEnd[0], ...stillEnd[1]]);
        const names = (list: readonly string[]) => new Set(list.map((each) => each.split(":")[0]));
        // Whatever was done was undone, in doubt or not.
        const undone = world.undone.filter((each) => each !== "finally");
        expect([crash, names(undone)]).toEqual([crash, names(world.done)]);
      }
    }
    return still.writes();
  };

  test("a failed run undoes everything in the same order", async () => {
    const writes = await explore((engine, world) => engine.start(trip(world, "fails")));
    expect(writes).toBeGreaterThan(8);
  });

  test("a cancelled run undoes everything in the same order", async () => {
    const writes = await explore(async (engine, world) => {
      const id = await engine.start(trip(world, "waits"));
      await engine.pass(3_700_000);
      await engine.tell(id, "cancel");
      return id;
    });
    expect(writes).toBeGreaterThan(8);
  });

  test("an undo whose worker dies in it is called again", async () => {
    const engine = createEngine();
    const calls: number[] = [];
    const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
      await ctx.step("book", () => 1, {
        undo: async (_, { attempt }) => {
          calls.push(attempt);
          if (calls.length === 1) await new Promise(() => {});
        },
      });
      throw new Error("no");
    });
    const id = await engine.start(tested);
    await engine.pass(1_000);
    await engine.crash();
    expect(await endOf(engine, id)).toEqual([
      "failed",
      ["undo_began", "attempt_crashed", "undo_completed book", "failed"],
    ]);
    expect(calls).toEqual([1, 1]);
  });

  test("a step that it died in is undone in doubt, if the run then fails or is cancelled", async () => {
    for (const status of ["failed", "cancelled"] as const) {
      const engine = createEngine();
      const seen: unknown[] = [];
      let calls = 0;
      const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
        await ctx.step(
          "pay",
          async () => {
            calls += 1;
            await new Promise(() => {});
          },
          {
            ...(status === "failed" && { onCrash: "fail" }),
            undo: (result, { inDoubt, idempotencyKey }) => seen.push([result, inDoubt, idempotencyKey]),
          },
        );
      });
      const id = await engine.start(tested);
      await engine.pass(1_000);
      if (status === "cancelled") await engine.tell(id, "cancel");
      await engine.crash();
      expect((await endOf(engine, id))[0]).toBe(status);
      expect([calls, seen]).toEqual([1, [[undefined, true, `${id}/pay`]]]);
    }
  });
});

test("a step that has failed before is undone in doubt if its worker dies in the next try", async () => {
  const engine = createEngine();
  const seen: unknown[] = [];
  const tested = workflow({ ...options, name: "tested" }, (ctx) =>
    ctx.step(
      "pay",
      async ({ attempt }) => {
        if (attempt === 1) throw new Error("not yet");
        await new Promise(() => {});
      },
      { retry: { attempts: 2, initial: "1s" }, undo: (_, { inDoubt }) => seen.push(inDoubt) },
    ),
  );
  const id = await engine.start(tested);
  await engine.pass(2_000);
  await engine.tell(id, "cancel");
  await engine.crash();
  expect([(await engine.end(id)).status, seen]).toEqual(["cancelled", [true]]);
  const facts = await engine.facts(id);
  expect(facts.slice(0, 3)).toEqual(["step_intended pay", "step_retried pay", "step_intended pay"]);
});

describe("an undo that fails", () => {
  const failing = (undo: StepOptions<number>["undo"] & {}, more: StepOptions<number> = {}) =>
    workflow({ ...options, name: "tested" }, async (ctx) => {
      await ctx.step("first", () => 1, { undo: () => {} });
      await ctx.step("book", () => 2, { undo, ...more });
      throw new Error("no");
    });

  test("is tried again, and the run waits without a process for a later try", async () => {
    const engine = createEngine();
    const attempts: number[] = [];
    const tested = failing(
      (_, { attempt }) => {
        attempts.push(attempt);
        if (attempt < 3) throw new Error("not yet");
      },
      { undoRetry: { attempts: 3, backoff: "fixed", initial: "1h", jitter: false } },
    );
    const id = await engine.start(tested);
    await engine.pass(1_000);
    expect([attempts, (await engine.store.getRun(id))?.status]).toEqual([[1], "waiting"]);
    expect(await endOf(engine, id)).toEqual([
      "failed",
      [
        "undo_began",
        "undo_retried book",
        "undo_retried book",
        "undo_completed book",
        "undo_completed first",
        "failed",
      ],
    ]);
    expect(attempts).toEqual([1, 2, 3]);
  });

  test("for good is reported, and the others are undone all the same", async () => {
    const engine = createEngine();
    let calls = 0;
    const tested = failing(() => {
      calls += 1;
      throw new Error("refused");
    });
    const id = await engine.start(tested);
    expect(await endOf(engine, id)).toEqual([
      "failed",
      [
        "undo_began",
        ...Array.from({ length: 4 }, () => "undo_retried book"),
        "undo_failed book",
        "undo_completed first",
        "failed",
      ],
    ]);
    expect(calls).toBe(5);
    const { error } = (await engine.store.getRun(id))!;
    expect(JSON.parse(error!.json)).toMatchObject({ message: "no", notUndone: ["book"] });
    expect(engine.log).toContainEqual(
      expect.objectContaining({ level: "error", message: "A step could not be undone." }),
    );
  });

  test("for good is reported by a cancelled run, too", async () => {
    const engine = createEngine();
    const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
      const undo = (): never => {
        throw new Error("refused");
      };
      await ctx.step("book", () => 2, { undo, undoRetry: { attempts: 1 } });
      await ctx.sleep("1d");
    });
    const id = await engine.start(tested);
    await engine.pass(1_000);
    await engine.tell(id, "cancel");
    expect((await engine.end(id)).status).toBe("cancelled");
    const { error } = (await engine.store.getRun(id))!;
    expect(JSON.parse(error!.json)).toMatchObject({ code: "RUN_CANCELLED", notUndone: ["book"] });
  });
});

test("a step whose code is gone cannot be undone, which is reported", async () => {
  const engine = createEngine();
  const world = createWorld();
  const build = (isOld: boolean) =>
    workflow({ ...options, name: "tested" }, async (ctx) => {
      const { call, options: stepOptions } = doing(world, "book", 1);
      await ctx.step("book", call, stepOptions);
      if (isOld) {
        const second = doing(world, "pay", 2);
        await ctx.step("pay", second.call, second.options);
      }
      await ctx.waitForSignal("never");
    });
  const id = await engine.start(build(true));
  await engine.pass(1_000);
  engine.register(build(false));
  await engine.tell(id, "cancel");
  expect(await endOf(engine, id)).toEqual([
    "cancelled",
    ["undo_began", "undo_failed pay", "undo_completed book", "cancelled"],
  ]);
  const failed = (await engine.history(id)).find(({ kind }) => kind === "undo_failed");
  expect(JSON.parse(failed!.data!.json)).toMatchObject({ code: "UNDO_MISSING" });
  expect(world.undone).toEqual(["book:1"]);
});

describe("a step that was told to stop", () => {
  const paying = (
    world: World,
    pay: (signal: AbortSignal) => Promise<string>,
    more: StepOptions<string> = {},
  ) =>
    workflow({ ...options, name: "paying" }, async (ctx) => {
      const { options: stepOptions } = doing<string>(world, "pay", "paid", more);
      await ctx.step("pay", ({ signal }) => pay(signal), stepOptions);
      await ctx.sleep("1d");
    });
  const aborted = (signal: AbortSignal): Promise<Error> =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(signal.reason as Error));
    });

  test("and completes is undone with its result", async () => {
    const engine = createEngine();
    const world = createWorld();
    const id = await engine.start(paying(world, async (signal) => (await aborted(signal)).name));
    await engine.idle();
    await engine.tell(id, "cancel");
    expect((await engine.end(id)).status).toBe("cancelled");
    expect(world.undone).toEqual(['pay:"PawlError"']);
  });

  test("and throws, is given up, or took too long, is undone in doubt", async () => {
    const deaf = () => new Promise<never>(() => {});
    const heeding = async (signal: AbortSignal) => {
      throw await aborted(signal);
    };
    for (const [pay, more, afterMs, status] of [
      [heeding, {}, 0, "cancelled"],
      [deaf, {}, 31_000, "cancelled"],
      [deaf, { timeout: "10s" }, 10_000, "failed"],
      [heeding, { timeout: "10s" }, 10_000, "failed"],
    ] as const) {
      const engine = createEngine();
      const world = createWorld();
      const id = await engine.start(paying(world, pay, more));
      await engine.idle();
      if (status === "cancelled") await engine.tell(id, "cancel");
      await engine.pass(afterMs);
      expect([(await engine.end(id)).status, world.undone]).toEqual([status, ["pay:in doubt"]]);
    }
  });
});

describe("while a run is undone", () => {
  const hanging = (gate: { readonly opened: Promise<void> }, undone: string[]) =>
    workflow({ ...options, name: "hanging", timeout: "10m" }, async (ctx) => {
      await ctx.step("first", () => 1, { undo: () => void undone.push("first") });
      await ctx.step("second", () => 2, {
        undo: async () => {
          await gate.opened;
          undone.push("second");
        },
      });
      throw new Error("no");
    });

  test("a cancel and its deadline change nothing", async () => {
    const engine = createEngine();
    const gate = createGate();
    const undone: string[] = [];
    const deadlineAt = engine.clock.now() + 600_000;
    const id = await engine.start(hanging(gate, undone), undefined, { deadlineAt });
    await engine.idle();
    await engine.tell(id, "cancel");
    await engine.pass(900_000);
    gate.open();
    expect((await engine.end(id)).status).toBe("failed");
    expect(undone).toEqual(["second", "first"]);
    expect(await engine.facts(id)).not.toContain("cancel_requested");
  });

  test("a pause holds it between two undos, also for the next holder", async () => {
    const engine = createEngine();
    const gate = createGate();
    const undone: string[] = [];
    const id = await engine.start(hanging(gate, undone));
    await engine.idle();
    await engine.tell(id, "pause");
    gate.open();
    await engine.pass(60_000);
    expect([undone, (await engine.store.getRun(id))?.status]).toEqual([["second"], "paused"]);
    await engine.tell(id, "cancel");
    await engine.pass(60_000);
    expect((await engine.store.getRun(id))?.status).toBe("paused");
    await engine.tell(id, "resume");
    expect((await engine.end(id)).status).toBe("failed");
    expect(undone).toEqual(["second", "first"]);
  });

  test("a worker that stops gives it back between two undos", async () => {
    const engine = createEngine();
    const gate = createGate();
    const undone: string[] = [];
    const id = await engine.start(hanging(gate, undone));
    await engine.idle();
    engine.executions[0]!.release();
    gate.open();
    expect(await engine.executions[0]!.done).toBe("released");
    expect(undone).toEqual(["second"]);
    expect((await engine.end(id)).status).toBe("failed");
    expect(undone).toEqual(["second", "first"]);
  });

  test("a paused run that is cancelled is undone at once", async () => {
    const engine = createEngine();
    const world = createWorld();
    const id = await engine.start(trip(world, "waits"));
    await engine.pass(1_000);
    await engine.tell(id, "pause");
    await engine.pass(1_000);
    expect((await engine.store.getRun(id))?.status).toBe("paused");
    await engine.tell(id, "cancel");
    await engine.idle();
    expect((await engine.store.getRun(id))?.status).toBe("cancelled");
    expect(world.undone.slice(-2).map((each) => each.split(":")[0])).toEqual(["hotel", "flight"]);
  });

  test("code that would go on now is not let", async () => {
    const engine = createEngine();
    const gate = createGate();
    const undone: string[] = [];
    let isFirst = true;
    const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
      await ctx.step("book", () => 1, {
        undo: async () => {
          if (isFirst) await gate.opened;
          undone.push("book");
        },
      });
      if (isFirst) throw new Error("only once");
      await ctx.step("more", () => undone.push("more"));
    });
    const id = await engine.start(tested);
    await engine.idle();
    isFirst = false;
    await engine.crash();
    expect([(await engine.end(id)).status, undone]).toEqual(["failed", ["book"]]);
    expect(JSON.parse((await engine.store.getRun(id))!.error!.json)).toMatchObject({ message: "only once" });
  });
});

test("a redriven run does again what was undone, and only that", async () => {
  const engine = createEngine();
  const world = createWorld();
  let isFirst = true;
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    await ctx.step("look", () => world.done.push("look"));
    const { call, options: stepOptions } = doing(world, "book", 1);
    await ctx.step("book", call, stepOptions);
    if (isFirst) throw new Error("no");
    return "there";
  });
  const id = await engine.start(tested);
  expect((await engine.end(id)).status).toBe("failed");
  isFirst = false;
  await engine.store.redrive([id]);
  expect((await engine.end(id)).status).toBe("completed");
  expect(world).toEqual({ done: ["look", "book", "book"], undone: ["book:1"] });
});

test("a run that is terminated undoes nothing", async () => {
  const engine = createEngine();
  const world = createWorld();
  const id = await engine.start(trip(world, "waits"));
  await engine.pass(1_000);
  await engine.store.terminate(id, null);
  await engine.idle();
  expect([(await engine.store.getRun(id))?.status, world.undone]).toEqual(["cancelled", []]);
});

test("requests in a finally block of a run that is cancelled are refused", async () => {
  const engine = createEngine();
  const codes: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    try {
      await ctx.step("book", () => 1, { undo: () => void codes.push("undone") });
      await ctx.sleep("1d");
    } finally {
      await ctx.step("late", () => 1).catch((error: unknown) => codes.push((error as PawlError).code));
    }
  });
  const id = await engine.start(tested);
  await engine.pass(1_000);
  await engine.tell(id, "cancel");
  await engine.end(id);
  expect(codes).toEqual(["RUN_CANCELLED", "undone"]);
});
