import { describe, expect } from "vitest";
import { aesGcmCodec, workflow, type PawlError } from "../../src/index.ts";
import { createGate, eventually, places, test, work } from "../jobs/job-test.ts";

describe.for(places)("on %s", (place) => {
  test("a step is tried again after short and after long pauses", async ({ open, queue }) => {
    const pawl = open(place);
    const attempts: number[] = [];
    const flaky = workflow({ name: "flaky", version: 1, queue }, (ctx) =>
      ctx.step(
        "work",
        ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error("not yet");
          return attempt;
        },
        // The second pause is too long to keep the slot.
        { retry: { attempts: 3, delays: ["20ms", "5500ms"], jitter: false } },
      ),
    );
    await work(pawl, { workflows: [flaky], queues: [queue] });
    const run = await pawl.start(flaky);
    expect(await run.result()).toBe(3);
    expect(attempts).toEqual([1, 2, 3]);
    const facts = (await run.history()).map(({ kind }) => kind);
    expect(facts).toEqual(["step_retried", "step_retried", "step_completed", "completed"]);
  });

  test("a step that takes too long fails with its code", async ({ open, queue }) => {
    const pawl = open(place);
    const slow = workflow({ name: "slow", version: 1, queue, retry: { attempts: 1 } }, (ctx) =>
      ctx.step("work", () => new Promise<never>(() => {}), { timeout: "20ms" }),
    );
    await work(pawl, { workflows: [slow], queues: [queue] });
    const run = await pawl.start(slow);
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_FAILED",
      cause: { code: "STEP_TIMED_OUT" },
    });
  });

  test("what was done is undone in reverse, and the result tells what could not be", async ({
    open,
    queue,
  }) => {
    const pawl = open(place);
    const undone: unknown[] = [];
    const saga = workflow({ name: "saga", version: 1, queue, retry: { attempts: 1 } }, async (ctx) => {
      await ctx.step("a", () => new Date(1), { undo: (at) => undone.push(at) });
      await ctx.step("b", () => "b", {
        undo: () => {
          throw new Error("refused");
        },
        undoRetry: { attempts: 2, initial: "10ms" },
      });
      await ctx.step("c", () => 3n, { undo: (count) => undone.push(count) });
      throw new Error("no money");
    });
    await work(pawl, { workflows: [saga], queues: [queue] });
    const run = await pawl.start(saga);
    const error = await run.result().catch((thrown: unknown) => thrown as PawlError);
    expect(error).toMatchObject({
      code: "RUN_FAILED",
      details: { runId: run.id, notUndone: ["b"] },
      cause: { message: "no money" },
    });
    expect(undone).toEqual([3n, new Date(1)]);
    const facts = (await run.history()).map(({ kind, name }) => (name === null ? kind : `${kind} ${name}`));
    expect(facts.slice(facts.indexOf("undo_began"))).toEqual([
      "undo_began",
      "undo_completed c",
      "undo_retried b",
      "undo_failed b",
      "undo_completed a",
      "failed",
    ]);
  });

  test("a cancelled run is undone, and its code hears why", async ({ open, queue }) => {
    const pawl = open(place);
    const heard: unknown[] = [];
    const waiting = workflow({ name: "waiting", version: 1, queue }, async (ctx) => {
      await ctx.step("book", () => "ticket", { undo: (ticket) => heard.push(ticket) });
      await ctx.waitForSignal("never").catch((error: unknown) => heard.push((error as PawlError).details));
    });
    await work(pawl, { workflows: [waiting], queues: [queue] });
    const run = await pawl.start(waiting);
    await eventually(async () => (await pawl.get(run.id))?.status).toBe("waiting");
    await run.cancel("it rains");
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_CANCELLED",
      details: { reason: "it rains" },
    });
    // A parked run may have been replayed more than once.
    expect(heard.slice(-2)).toEqual([{ runId: run.id, reason: "it rains" }, "ticket"]);
  });

  test("how far a long step has come is seen from outside", async ({ open, queue, pool, home }) => {
    const pawl = open(place);
    const gate = createGate();
    const exporting = workflow({ name: "exporting", version: 1, queue }, (ctx) =>
      ctx.step("export", ({ heartbeat }) => {
        heartbeat({ rows: 7, at: new Date(5) });
        return gate.opened;
      }),
    );
    const settings = { heartbeat: 50, lease: "5s" } as const;
    await work(pawl, { workflows: [exporting], queues: [queue], ...settings });
    const run = await pawl.start(exporting);
    const longSteps = async () => {
      const steps = (await pawl.workers()).flatMap((worker) => worker.longSteps);
      return steps.filter(({ runId }) => runId === run.id).map(({ step, progress }) => ({ step, progress }));
    };
    await eventually(longSteps).toEqual([{ step: "export", progress: { rows: 7, at: new Date(5) } }]);
    if (place === "postgres") {
      const { rows } = await pool.query(
        `select name, progress ->> 'rows' as rows, progress_notes is not null as noted
           from ${home}.running_steps where run_id = $1`,
        [run.id],
      );
      expect(rows).toEqual([{ name: "export", rows: "7", noted: true }]);
    }
    gate.open();
    await run.result();
  });
});

test("with a codec, progress, failures and results of steps are hidden, and undone all the same", async ({
  open,
  queue,
  pool,
  home,
}) => {
  const secret = "marzipan";
  const codec = aesGcmCodec({ keys: [{ id: "2026-11", key: new Uint8Array(32).fill(1) }] });
  const pawl = open("postgres", { codec });
  const undone: unknown[] = [];
  const seen: unknown[] = [];
  const gate = createGate();
  const secretive = workflow(
    { name: "secretive", version: 1, queue, retry: { attempts: 1 } },
    async (ctx) => {
      await ctx.step("book", () => secret, { undo: (result) => undone.push(result) });
      await ctx.step("keep", () => secret, {
        undo: () => {
          throw new Error(secret);
        },
        undoRetry: { attempts: 2, initial: 0 },
      });
      await ctx.step(
        "work",
        async ({ heartbeat, progress, attempt }) => {
          seen.push(progress);
          heartbeat(secret);
          if (attempt === 1) throw new Error(secret);
          await gate.opened;
        },
        { retry: { attempts: 2, initial: 0 } },
      );
      throw new Error(secret);
    },
  );
  await work(pawl, { workflows: [secretive], queues: [queue], heartbeat: 50, lease: "5s" });
  const run = await pawl.start(secretive);
  const progress = async () =>
    (await pawl.workers())
      .flatMap((worker) => worker.longSteps)
      .filter(({ runId }) => runId === run.id)
      .map((step) => step.progress);
  await eventually(progress).toEqual([secret]);
  const { rows: shown } = await pool.query(
    `select progress::text from ${home}.running_steps where run_id = $1`,
    [run.id],
  );
  gate.open();
  await expect(run.result()).rejects.toMatchObject({
    cause: { message: secret, notUndone: ["keep"] },
    details: { notUndone: ["keep"] },
  });
  expect([undone, seen]).toEqual([[secret], [undefined, secret]]);
  const { rows } = await pool.query(`select e::text from ${home}.event e where e.run_id = $1`, [run.id]);
  expect([rows.length > 8, JSON.stringify([shown, rows])]).toEqual([
    true,
    expect.not.stringContaining(secret),
  ]);
});
