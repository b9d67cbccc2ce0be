import { describe, expect, test } from "vitest";
import type { Duration } from "../../src/core/duration.ts";
import { PawlError } from "../../src/core/error.ts";
import { NonRetryableError, RetryAfterError } from "../../src/core/retry-error.ts";
import type { StepOptions } from "../../src/runtime/step-options.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { exploreCrashes } from "../runtime/crash-explorer.ts";
import { createEngine } from "../runtime/engine.ts";
import { createGate } from "../runtime/gate.ts";

const options = { version: 1, crashLimit: 1_000, retry: { attempts: 1 } } as const;
const fixed = (attempts: number, initial: Duration) =>
  ({ retry: { attempts, backoff: "fixed", initial, jitter: false } }) as const;

/** Fails until this attempt, and says what each was given. */
function failUntil(good: number, stepOptions: StepOptions, error = () => new Error("not yet")) {
  const attempts: number[] = [];
  const keys = new Set<string>();
  const tested = workflow({ ...options, name: "tested" }, (ctx) =>
    ctx.step(
      "work",
      ({ attempt, idempotencyKey }) => {
        attempts.push(attempt);
        keys.add(idempotencyKey);
        if (attempt < good) throw error();
        return attempt;
      },
      stepOptions,
    ),
  );
  return { tested, attempts, keys };
}

describe("a step that fails", () => {
  test("is tried once where nothing else is said", async () => {
    const engine = createEngine();
    const { tested, attempts } = failUntil(9, {});
    const id = await engine.start(tested);
    expect((await engine.end(id)).status).toBe("failed");
    expect(attempts).toEqual([1]);
    expect(await engine.facts(id)).toEqual(["step_failed work", "failed"]);
  });

  test("is tried again as its policy says, under one idempotency key", async () => {
    const engine = createEngine();
    const { tested, attempts, keys } = failUntil(3, fixed(3, "2s"));
    const id = await engine.start(tested);
    const startedAt = engine.clock.now();
    await engine.end(id);
    expect(await engine.output(id)).toBe(3);
    expect([attempts, [...keys]]).toEqual([[1, 2, 3], [`${id}/work`]]);
    expect(engine.clock.now() - startedAt).toBe(4_000);
    expect(await engine.facts(id)).toEqual([
      "step_retried work",
      "step_retried work",
      "step_completed work",
      "completed",
    ]);
    const [first] = await engine.history(id);
    expect([first!.attempt, first!.dueAt! - startedAt]).toEqual([1, 2_000]);
  });

  test("throws the last error once its attempts are spent", async () => {
    const engine = createEngine();
    const { tested, attempts } = failUntil(9, fixed(2, "1s"));
    const id = await engine.start(tested);
    const run = await engine.end(id);
    expect(JSON.parse(run.error!.json)).toMatchObject({ message: "not yet" });
    expect(attempts).toEqual([1, 2]);
    expect(await engine.facts(id)).toEqual(["step_retried work", "step_failed work", "failed"]);
  });

  test("keeps the run where it is for a short pause, and parks it for a long one", async () => {
    for (const [pause, status] of [
      ["5s", "running"],
      ["6s", "waiting"],
    ] as const) {
      const engine = createEngine();
      const { tested } = failUntil(2, fixed(2, pause));
      const id = await engine.start(tested);
      await engine.pass(1_000);
      expect((await engine.store.getRun(id))?.status).toBe(status);
      expect((await engine.end(id)).status).toBe("completed");
      expect(engine.outcomes).toEqual(status === "running" ? ["ended"] : ["parked", "ended"]);
    }
  });

  test("does not let the run park while another step runs", async () => {
    const engine = createEngine();
    const gate = createGate();
    const called: number[] = [];
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      Promise.all([
        ctx.step("slow", () => gate.opened),
        ctx.step(
          "work",
          ({ attempt }) => {
            called.push(attempt);
            if (attempt === 1) throw new Error("not yet");
          },
          fixed(2, "1m"),
        ),
      ]),
    );
    const id = await engine.start(tested);
    await engine.pass(59_999);
    expect([called, (await engine.store.getRun(id))?.status]).toEqual([[1], "running"]);
    await engine.pass(1);
    expect(called).toEqual([1, 2]);
    gate.open();
    expect((await engine.end(id)).status).toBe("completed");
    expect(engine.outcomes).toEqual(["ended"]);
  });

  test("is not tried again where its error, or retryIf, says so", async () => {
    const coded = (code: string) => Object.assign(new Error("no"), { code });
    const retryIf = (error: unknown): boolean => (error as { code?: string }).code !== "E_FINAL";
    for (const [error, tries] of [
      [() => new NonRetryableError("no"), 1],
      [() => coded("E_FINAL"), 1],
      [() => coded("E_BUSY"), 3],
    ] as const) {
      const engine = createEngine();
      const { tested, attempts } = failUntil(9, { retry: { attempts: 3, retryIf } }, error);
      const id = await engine.start(tested);
      expect((await engine.end(id)).status).toBe("failed");
      expect(attempts).toHaveLength(tries);
    }
  });

  test("is tried again when its error says", async () => {
    const engine = createEngine();
    const error = () => new RetryAfterError("busy", { after: "90s" });
    const { tested } = failUntil(2, { retry: { attempts: 2 } }, error);
    const startedAt = engine.clock.now();
    const id = await engine.start(tested);
    await engine.end(id);
    expect(engine.clock.now() - startedAt).toBe(90_000);
  });

  test("counts on in the run's next attempt, and has all its tries again", async () => {
    const engine = createEngine();
    const attempts: number[] = [];
    const tested = workflow(
      { ...options, name: "tested", retry: { attempts: 2, initial: "1s" } },
      async (ctx) =>
        ctx.step(
          "work",
          ({ attempt }) => {
            attempts.push(attempt);
            if (attempt < 4) throw new Error("not yet");
            return ctx.run.attempt;
          },
          fixed(2, "1s"),
        ),
    );
    const id = await engine.start(tested);
    await engine.end(id);
    expect([attempts, await engine.output(id)]).toEqual([[1, 2, 3, 4], 2]);
  });

  test("is not tried again once the run is cancelled between two tries", async () => {
    for (const pause of ["2s", "1h"] as const) {
      const engine = createEngine();
      const { tested, attempts } = failUntil(9, fixed(3, pause));
      const id = await engine.start(tested);
      await engine.pass(1_000);
      await engine.tell(id, "cancel");
      await engine.idle();
      expect([(await engine.store.getRun(id))?.status, attempts]).toEqual(["cancelled", [1]]);
      expect(await engine.facts(id)).toEqual(["step_retried work", "cancel_requested", "cancelled"]);
    }
  });

  test("is tried again by whoever takes over, wherever a worker dies", async () => {
    const tries = await exploreCrashes(async (engine) => {
      const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
        const one = ctx.step("one", ({ attempt }) => failed(attempt, 3), fixed(3, "2s"));
        const two = ctx.step("two", ({ attempt }) => failed(attempt, 2), fixed(2, "1h"));
        return [await one, await two, await ctx.step("three", () => 3)];
      });
      return engine.start(tested);
    });
    expect(tries).toBeGreaterThan(8);
  });

  test("waits while the run is paused", async () => {
    const engine = createEngine();
    const { tested, attempts } = failUntil(2, fixed(2, "2s"));
    const id = await engine.start(tested);
    await engine.idle();
    await engine.tell(id, "pause");
    await engine.pass(60_000);
    expect([attempts, (await engine.store.getRun(id))?.status]).toEqual([[1], "paused"]);
    await engine.tell(id, "resume");
    await engine.pass(1_000);
    expect([attempts, (await engine.store.getRun(id))?.status]).toEqual([[1, 2], "completed"]);
  });

  test("goes back with its run when the worker stops, and is tried again elsewhere", async () => {
    const engine = createEngine();
    const { tested, attempts } = failUntil(2, fixed(2, "3s"));
    const id = await engine.start(tested);
    await engine.idle();
    engine.executions[0]!.release();
    await engine.executions[0]!.done;
    expect(engine.outcomes).toEqual(["released"]);
    await engine.end(id);
    expect(attempts).toEqual([1, 2]);
  });
});

function failed(attempt: number, good: number): number {
  if (attempt < good) throw new Error("not yet");
  return attempt;
}

describe("a step's timeout", () => {
  test("aborts the attempt's own signal and fails it, and the next attempt has a new one", async () => {
    const engine = createEngine();
    const reasons: unknown[] = [];
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      ctx.step(
        "work",
        ({ signal, attempt }) => {
          if (attempt === 2) return signal.aborted;
          return new Promise<never>((_, reject) => {
            signal.addEventListener("abort", () => {
              reasons.push((signal.reason as PawlError).code);
              reject(signal.reason as Error);
            });
          });
        },
        { ...fixed(2, "0ms"), timeout: "10s" },
      ),
    );
    const id = await engine.start(tested);
    await engine.pass(9_999);
    expect(reasons).toEqual([]);
    await engine.end(id);
    expect([await engine.output(id), reasons]).toEqual([false, ["STEP_TIMED_OUT"]]);
  });

  test("gives up a function that does not heed it, and what it does later changes nothing", async () => {
    const engine = createEngine();
    const gate = createGate();
    const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
      const code = await ctx
        .step(
          "deaf",
          async ({ heartbeat }) => {
            await gate.opened;
            heartbeat("late");
            return "late";
          },
          { timeout: "10s" },
        )
        .catch((error: unknown) => (error as PawlError).code);
      await ctx.waitForSignal("go");
      return code;
    });
    const id = await engine.start(tested);
    await engine.pass(10_000);
    gate.open();
    await engine.pass(1_000);
    await engine.tell(id, "signal:go");
    await engine.end(id);
    expect(await engine.output(id)).toBe("STEP_TIMED_OUT");
    expect(await engine.facts(id)).toEqual(["step_failed deaf", "signal_received signal:go", "completed"]);
  });
});

describe("a step's heartbeat", () => {
  test("is recorded at once, then at most every 5 s, always the newest", async () => {
    const engine = createEngine();
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      ctx.step("work", async ({ heartbeat }) => {
        for (let second = 0; second < 12; second++) {
          heartbeat({ second });
          await engine.delay(1_000);
        }
      }),
    );
    const id = await engine.start(tested);
    await engine.end(id);
    const told = (await engine.history(id)).flatMap(({ kind, data }) =>
      kind === "step_progressed" ? [JSON.parse(data!.json) as unknown] : [],
    );
    expect(told).toEqual([{ second: 0 }, { second: 4 }, { second: 9 }]);
  });

  test("reaches the next attempt, whether the last one failed or died with its worker", async () => {
    const engine = createEngine();
    const seen: unknown[] = [];
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      ctx.step(
        "work",
        async ({ progress, heartbeat, attempt }) => {
          seen.push([attempt, progress]);
          if (seen.length === 1) {
            heartbeat("a third");
            heartbeat("two thirds");
            throw new Error("not yet");
          }
          if (seen.length === 2) {
            heartbeat(new Date(5));
            await new Promise(() => {});
          }
          return "done";
        },
        fixed(2, "1s"),
      ),
    );
    const id = await engine.start(tested);
    await engine.pass(2_000);
    await engine.crash();
    await engine.end(id);
    expect(seen).toEqual([
      [1, undefined],
      [2, "two thirds"],
      [2, new Date(5)],
    ]);
    expect(await engine.output(id)).toBe("done");
  });

  test("never throws, whatever it is given", async () => {
    const engine = createEngine();
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      ctx.step("work", ({ heartbeat }) => {
        heartbeat();
        heartbeat(() => {});
        heartbeat(Symbol("no"));
        return "fine";
      }),
    );
    const id = await engine.start(tested);
    await engine.end(id);
    expect(await engine.output(id)).toBe("fine");
    expect(await engine.facts(id)).toEqual(["step_completed work", "completed"]);
  });

  test("does not keep a step that was told to stop from being given up", async () => {
    const engine = createEngine();
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      ctx.step("deaf", async ({ heartbeat }) => {
        for (let count = 0; count < 100; count++) {
          heartbeat(count);
          await engine.delay(1_000);
        }
      }),
    );
    const id = await engine.start(tested);
    await engine.pass(10_000);
    await engine.tell(id, "cancel");
    await engine.pass(31_000);
    expect((await engine.store.getRun(id))?.status).toBe("cancelled");
  });
});

describe("a step that must not be called twice", () => {
  const charging = (called: number[], stepOptions: StepOptions, hang: () => boolean) =>
    workflow({ ...options, name: "charging" }, async (ctx) => {
      const first = await ctx.step("before", () => "before");
      const code = await ctx
        .step(
          "charge",
          async ({ attempt }) => {
            called.push(attempt);
            if (hang()) await new Promise(() => {});
            if (attempt === 1) throw new Error("not yet");
            return "charged";
          },
          { onCrash: "fail", ...stepOptions },
        )
        .catch((error: unknown) => (error as PawlError).code);
      return [first, code];
    });

  test("says so before it is called, each time", async () => {
    const engine = createEngine();
    const called: number[] = [];
    const id = await engine.start(charging(called, fixed(2, "1s"), () => false));
    await engine.end(id);
    expect(await engine.facts(id)).toEqual([
      "step_completed before",
      "step_intended charge",
      "step_retried charge",
      "step_intended charge",
      "step_completed charge",
      "completed",
    ]);
  });

  test("has failed if its worker died in it", async () => {
    for (const attempt of [1, 2]) {
      const engine = createEngine();
      const called: number[] = [];
      const id = await engine.start(charging(called, fixed(3, "1s"), () => called.length === attempt));
      await engine.pass(2_000);
      await engine.crash();
      await engine.end(id);
      expect(called).toHaveLength(attempt);
      expect(await engine.output(id)).toEqual(["before", "STEP_CRASHED"]);
      expect((await engine.facts(id)).at(-2)).toBe("step_failed charge");
    }
  });

  test("is not called by a new attempt of the run either, but by a redriven run", async () => {
    const engine = createEngine();
    let calls = 0;
    const tested = workflow(
      { ...options, name: "tested", retry: { attempts: 3, initial: "1s" } },
      async (ctx) => {
        try {
          return await ctx.step(
            "charge",
            async () => {
              calls += 1;
              if (calls === 1) await new Promise(() => {});
              return "charged";
            },
            { onCrash: "fail" },
          );
        } catch (cause) {
          throw new Error("it did not work", { cause });
        }
      },
    );
    const id = await engine.start(tested);
    await engine.pass(1_000);
    await engine.crash();
    expect([(await engine.end(id)).status, calls]).toEqual(["failed", 1]);
    await engine.store.redrive([id]);
    expect([(await engine.end(id)).status, calls]).toEqual(["completed", 2]);
  });

  test("is called at most once, wherever a worker dies", async () => {
    const scenario = (crashAt: (call: number, when: string) => boolean) => {
      const engine = createEngine({ crashAt });
      let calls = 0;
      const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
        await ctx.step("before", () => 1);
        const result = await ctx
          .step("once", () => ++calls, { onCrash: "fail" })
          .catch((error: unknown) => (error as PawlError).code);
        await ctx.sleep("1h");
        return result;
      });
      return { engine, tested, calls: () => calls };
    };
    const results = new Set<unknown>();
    for (let write = 1; write <= 6; write++) {
      for (const at of ["before", "after"]) {
        const { engine, tested, calls } = scenario((call, when) => call === write && when === at);
        const id = await engine.start(tested);
        await engine.end(id);
        expect(calls()).toBeLessThanOrEqual(1);
        results.add(await engine.output(id));
      }
    }
    expect(results).toEqual(new Set([1, "STEP_CRASHED"]));
  });

  test("does not begin once the run is cancelled while that is written down", async () => {
    let onWrite = (): void => {};
    const engine = createEngine({
      probe: (point) => {
        if (point === "record.after") onWrite();
      },
    });
    let calls = 0;
    const tested = workflow({ ...options, name: "tested" }, (ctx) =>
      ctx.step("once", () => ++calls, { onCrash: "fail" }),
    );
    const id = await engine.start(tested);
    onWrite = () => {
      onWrite = () => {};
      void engine.tell(id, "cancel");
    };
    expect((await engine.end(id)).status).toBe("cancelled");
    expect([calls, await engine.facts(id)]).toEqual([
      0,
      ["step_intended once", "cancel_requested", "step_failed once", "cancelled"],
    ]);
  });
});

test("a run that returns while steps are in progress says so", async () => {
  const engine = createEngine();
  const reasons: string[] = [];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    void ctx.step("forgotten", ({ signal }) => {
      signal.addEventListener("abort", () => reasons.push((signal.reason as PawlError).code));
      return new Promise(() => {});
    });
    return ctx.step("awaited", () => "done");
  });
  const id = await engine.start(tested);
  await engine.end(id);
  expect(reasons).toEqual(["RUN_ENDED"]);
  expect(engine.log).toContainEqual(
    expect.objectContaining({ level: "warn", fields: expect.objectContaining({ steps: ["forgotten"] }) }),
  );
});

test("wrong step options are refused with what was meant", async () => {
  const engine = createEngine();
  const wrong: readonly unknown[] = [
    { timout: "3s" },
    { retry: { attempt: 2 } },
    { timeout: "soon" },
    { undo: 5 },
    { undoRetry: { attempts: 2 } },
    { onCrash: "ignore" },
    null,
    7,
  ];
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const messages: string[] = [];
    for (const each of wrong) {
      const error: unknown = await ctx
        .step("work", () => 1, each as StepOptions)
        .catch((thrown: unknown) => thrown);
      if (PawlError.is(error, "INVALID_OPTION")) messages.push(error.message);
    }
    return messages;
  });
  const id = await engine.start(tested);
  await engine.end(id);
  const messages = (await engine.output(id)) as readonly string[];
  expect(messages).toHaveLength(wrong.length);
  expect(messages[0]).toContain('"timeout"');
  expect(messages[1]).toContain('"retry.attempts"');
});

test("a cancel's reason reaches the code and its steps", async () => {
  const engine = createEngine();
  const heard: unknown[] = [];
  const hear = (error: unknown): void => {
    const { code, message, details } = error as PawlError;
    heard.push([code, message.endsWith(": too late"), details["reason"]]);
  };
  const tested = workflow({ ...options, name: "tested" }, async (ctx) => {
    const step = ctx.step("work", ({ signal }) => {
      return new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => {
          hear(signal.reason);
          resolve();
        });
      });
    });
    await Promise.allSettled([ctx.sleep("1d").catch(hear), step]);
  });
  const id = await engine.start(tested);
  await engine.idle();
  await engine.tell(id, "cancel", { reason: "too late" });
  await engine.end(id);
  const said = ["RUN_CANCELLED", true, "too late"];
  expect(heard).toEqual([said, said]);
});
