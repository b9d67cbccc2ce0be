import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { createClient } from "../../src/client/client.ts";
import type { RunPage } from "../../src/client/reading.ts";
import { ref } from "../../src/client/ref.ts";
import type { RunHandle } from "../../src/client/run-handle.ts";
import { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import type { Store } from "../../src/store/store.ts";
import { createManualWorld } from "../manual-world.ts";

const checkout = workflow(
  {
    name: "checkout",
    version: 2,
    queue: "orders",
    timeout: "30d",
    input: z.object({ orderId: z.coerce.number() }),
    signals: { shipped: z.object({ carrier: z.string() }) },
  },
  async (_ctx, { orderId }) => ({ orderId }),
);
const greet = workflow({ name: "greet", version: 1 }, async (_ctx, name: string) => `Hello ${name}`);
const tick = workflow({ name: "tick", version: 1 }, async () => "tock");

describe("starting a run", () => {
  test("stores what the schema makes of the input, on the workflow's queue, with its timeout", async () => {
    const { client, store, clock } = createManualWorld();
    const run = await client.start(checkout, { orderId: "9182" });
    expect(store.snapshot().runs).toEqual([
      expect.objectContaining({
        id: run.id,
        workflow: "checkout",
        version: 2,
        queue: "orders",
        priority: 0,
        input: { value: { orderId: 9182 } },
        key: null,
        deadlineAt: clock.now() + 30 * 86_400_000,
      }),
    ]);
  });

  test("refuses an input that does not fit, before anything is stored", async () => {
    const { client, store } = createManualWorld();
    await expect(client.start(checkout, { orderId: "many" })).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
      details: { issues: [expect.objectContaining({ path: "orderId" })] },
    });
    await expect(client.start(greet, "\0")).rejects.toMatchObject({ code: "INVALID_PAYLOAD" });
    expect(store.snapshot().runs).toEqual([]);
  });

  test("options decide queue, priority, and when it starts, expires and times out", async () => {
    const { client, store, clock } = createManualWorld();
    const options = { queue: "slow", priority: 7, delay: "1h", timeout: "2h", expiresIn: "90m" } as const;
    await client.start(greet, "Ada", options);
    const hour = 3_600_000;
    expect(store.snapshot().runs).toEqual([
      expect.objectContaining({
        queue: "slow",
        priority: 7,
        deadlineAt: clock.now() + 3 * hour,
        expiresAt: clock.now() + 2.5 * hour,
      }),
    ]);
    expect(store.snapshot().parked).toEqual([
      expect.objectContaining({ reason: "delayed", dueAt: clock.now() + hour }),
    ]);
    await client.start(greet, "Bob", { at: new Date(clock.now() + 5) });
    expect(store.snapshot().parked).toContainEqual(expect.objectContaining({ dueAt: clock.now() + 5 }));
  });

  test("refuses options that are unknown, wrong or contradict each other", async () => {
    const { client } = createManualWorld();
    const started = (options: object) => client.start(greet, "Ada", options);
    await expect(started({ prioriti: 1 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      details: { problems: [{ option: "prioriti", closest: "priority" }] },
    });
    await expect(started({ delay: "soon" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(started({ delay: 8.64e15 })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(started({ at: new Date(Number.NaN) })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(started({ at: new Date(), delay: 1 })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(started({ key: "" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(started({ queue: "x".repeat(300) })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });

  test("refuses a run whose time would be up before it may begin", async () => {
    const { client, clock, store } = createManualWorld();
    const inMs = (ms: number) => new Date(clock.now() + ms);
    const hour = 3_600_000;
    const refused = async (option: string, options: object) =>
      expect(client.start(greet, "Ada", options)).rejects.toMatchObject({
        code: "INVALID_OPTION",
        details: { problems: [{ option }] },
      });
    await refused("expiresAt", { delay: "1h", expiresAt: inMs(hour) });
    await refused("expiresAt", { at: inMs(hour), expiresAt: inMs(5) });
    await refused("deadline", { delay: "1h", deadline: inMs(5) });
    await expect(
      client.startMany(greet, [{ input: "a", expiresAt: inMs(1) }], { delay: 2 }),
    ).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(store.snapshot().runs).toEqual([]);
    await client.start(greet, "Ada", { delay: 0, expiresIn: 0 });
  });

  test("counts lengths of time from when the run may begin", async () => {
    const { client, clock, store } = createManualWorld();
    const now = clock.now();
    await client.start(greet, "Ada", { delay: "1h", timeout: "2h", expiresIn: "3h" });
    await client.start(greet, "Ada", { at: new Date(now - 5), timeout: "2h" });
    const hour = 3_600_000;
    expect(store.snapshot().runs).toMatchObject([
      { startAt: now + hour, deadlineAt: now + 3 * hour, expiresAt: now + 4 * hour },
      { deadlineAt: now + 2 * hour, expiresAt: null },
    ]);
  });

  test("with a key is idempotent, also among a thousand callers", async () => {
    const { client, store } = createManualWorld();
    const runs = await Promise.all(
      Array.from({ length: 1_000 }, () => client.start(greet, "Ada", { key: "greet:ada" })),
    );
    expect(new Set(runs.map((run) => run.id)).size).toBe(1);
    expect(store.snapshot().runs).toHaveLength(1);
  });

  test("with a key that belongs to another input is a conflict, and with an equal one if the caller says so", async () => {
    const { client } = createManualWorld();
    const run = await client.start(greet, "Ada", { key: "k" });
    await expect(client.start(greet, "Bob", { key: "k" })).rejects.toMatchObject({
      code: "KEY_CONFLICT",
      details: { key: "k", runId: run.id },
    });
    expect((await client.start(greet, "Ada", { key: "k", onConflict: "return" })).id).toBe(run.id);
    await expect(client.start(greet, "Ada", { key: "k", onConflict: "reject" })).rejects.toMatchObject({
      code: "KEY_CONFLICT",
      details: { key: "k", runId: run.id },
    });
  });

  test("creates one run though the answer was lost", async () => {
    const world = createManualWorld();
    let losses = 2;
    const store = {
      ...world.store,
      createRuns: async (runs: Parameters<typeof world.store.createRuns>[0]) => {
        const answer = await world.store.createRuns(runs);
        if (losses-- > 0) throw new PawlError("STORE_UNAVAILABLE", "The connection was lost.");
        return answer;
      },
    };
    const starting = createClient(world.seams({ store })).start(greet, "Ada");
    await world.advance("5s");
    const run = await starting;
    expect(world.store.snapshot().runs.map(({ id }) => id)).toEqual([run.id]);
  });

  test("gives up after some tries when the store stays away", async () => {
    const world = createManualWorld();
    let tries = 0;
    const store = {
      ...world.store,
      createRuns: async () => {
        tries += 1;
        throw new PawlError("STORE_UNAVAILABLE", "The store is down.");
      },
    };
    const starting = createClient(world.seams({ store })).start(greet, "Ada");
    const failed = starting.catch((error: unknown) => error);
    await world.advance("10s");
    expect(await failed).toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(tries).toBe(5);
  });

  test("starts no more than one chunk after one that fails in the end", async () => {
    const world = createManualWorld();
    let failing: unknown = null;
    const store = {
      ...world.store,
      createRuns: async (runs: Parameters<typeof world.store.createRuns>[0]) => {
        failing ??= runs[0]?.id;
        if (runs[0]?.id === failing) throw new PawlError("STORE_UNAVAILABLE", "The store is down.");
        return world.store.createRuns(runs);
      },
    };
    const items = Array.from({ length: 5_000 }, () => ({ input: "Ada" }));
    const starting = createClient(world.seams({ store })).startMany(greet, items);
    const failed = starting.catch((error: unknown) => error);
    await world.advance("10s");
    expect(await failed).toMatchObject({ code: "STORE_UNAVAILABLE", details: { started: 0 } });
    expect(world.store.snapshot().runs).toHaveLength(1_000);
  });

  test("makes ids that follow the store's clock, not this process's", async () => {
    const world = createManualWorld();
    const seams = world.seams({ store: { ...world.store, now: async () => 1_000_000_000_000 } });
    const run = await createClient(seams).start(greet, "Ada");
    expect(Number.parseInt(run.id.replace("-", "").slice(0, 12), 16)).toBe(1_000_000_000_000);
  });

  test("types follow from the workflow, or from its type alone", async () => {
    const { client, store } = createManualWorld();
    const run = await client.start(checkout, { orderId: 1 });
    expectTypeOf<ReturnType<typeof run.result>>().resolves.toEqualTypeOf<{ orderId: number }>();
    expectTypeOf<Parameters<typeof run.signal<"shipped">>[1]>().toEqualTypeOf<{ carrier: string }>();
    expectTypeOf(await client.start(tick)).toEqualTypeOf<RunHandle<string>>();
    // @ts-expect-error A name is not left out.
    await client.start(greet);
    // @ts-expect-error An order has a number.
    await client.start(checkout, { order: 1 }).catch(() => {});

    const elsewhere = ref<typeof greet>("greet", 3, { queue: "letters" });
    expectTypeOf(await client.start(elsewhere, "Ada")).toEqualTypeOf<RunHandle<string>>();
    expect(store.snapshot().runs.at(-1)).toMatchObject({ workflow: "greet", version: 3, queue: "letters" });
  });
});

test("what is no workflow cannot be started", async () => {
  const { client } = createManualWorld();
  for (const wrong of ["a", null, {}]) {
    await expect(client.start(wrong as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  }
  await expect(client.start(undefined as never)).rejects.toThrow(
    "start needs a workflow made with workflow() or ref(); is it undefined through a circular import?",
  );
});

test("the first call waits until the client is ready, whichever it is", async () => {
  const world = createManualWorld();
  const { id } = await world.client.start(tick);
  const acts: readonly ((run: RunHandle) => Promise<unknown>)[] = [
    (run) => run.status(),
    (run) => run.history(),
    (run) => run.signal("go"),
    (run) => run.cancel(),
    (run) => run.result().catch(() => {}),
  ];
  for (const act of acts) {
    let makeReady = (): void => {};
    const isReady = new Promise<void>((resolve) => (makeReady = resolve));
    let calls = 0;
    const client = createClient({ ...world.seams(), ready: () => ((calls += 1), isReady) });
    let isDone = false;
    const done = act(client.handle(id)).then(() => (isDone = true));
    await new Promise(setImmediate);
    expect({ calls, isDone }).toEqual({ calls: 1, isDone: false });
    makeReady();
    await done;
    await client.get(id);
    expect(calls).toBe(1);
  }
});

describe("telling a run", () => {
  test("a signal is stored with its payload; the sender's retry changes nothing", async () => {
    const { client, store } = createManualWorld();
    const run = await client.start(checkout, { orderId: 1 });
    await run.signal("shipped", { carrier: "dhl" }, { idempotencyKey: "hook-1" });
    await run.signal("shipped", { carrier: "dhl" }, { idempotencyKey: "hook-1" });
    expect(store.snapshot().inbox).toEqual([
      expect.objectContaining({
        topic: "signal:shipped",
        data: { value: { carrier: "dhl" } },
        idempotencyKey: "hook-1",
      }),
    ]);
  });

  test("a signal is checked against the workflow's schemas where they are known", async () => {
    const { client } = createManualWorld();
    const run = await client.start(checkout, { orderId: 1 });
    await expect(run.signal("shipped", { carrier: 3 } as never)).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
    });
    await expect(run.signal("lost" as never, undefined as never)).rejects.toMatchObject({
      code: "INVALID_NAME",
    });
    await client.signal(run.id, "anything", { goes: true });
  });

  test("what cannot arrive is an error: no such run, or one that has ended", async () => {
    const { client } = createManualWorld();
    const run = await client.start(greet, "Ada");
    await run.cancel("changed my mind");
    expect(await run.status()).toBe("cancelled");
    await expect(run.signal("late")).rejects.toMatchObject({ code: "RUN_ENDED" });
    await expect(client.pause(run.id)).rejects.toMatchObject({ code: "RUN_ENDED" });
    const nobody = "01900000-0000-7000-8000-000000000000";
    await expect(client.signal(nobody, "word")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
    await expect(client.cancel("not an id")).rejects.toMatchObject({ code: "RUN_NOT_FOUND" });
  });

  test("cancelling a run that has ended does nothing", async () => {
    const { client } = createManualWorld();
    const run = await client.start(greet, "Ada");
    await run.cancel();
    await run.cancel();
    expect(await run.status()).toBe("cancelled");
  });

  test("a paused run waits until it is resumed", async () => {
    const world = createManualWorld();
    const run = await world.client.start(greet, "Ada");
    await world.client.pause(run.id);
    expect(await run.status()).toBe("paused");
    await world.worker({ workflows: [greet] }).start();
    await world.advance("10s");
    expect(await run.status()).toBe("paused");
    await world.client.resume(run.id);
    await world.advance(1);
    expect(await run.result()).toBe("Hello Ada");
  });
});

describe("looking at runs", () => {
  test("a run is read with its values as they were given", async () => {
    const world = createManualWorld();
    await world.worker({ workflows: [greet] }).start();
    const { id } = await world.client.start(greet, "Ada", { key: "k" });
    await world.rest();
    const at = new Date(world.clock.now());
    expect(await world.client.get(id)).toMatchObject({
      id,
      workflow: "greet",
      status: "completed",
      key: "k",
      input: "Ada",
      output: "Hello Ada",
      error: null,
      createdAt: at,
      endedAt: at,
    });
    expect(await world.client.get("01900000-0000-7000-8000-000000000000")).toBeNull();
    expect(await world.client.get("nonsense")).toBeNull();
    expect(await world.client.handle(id).history()).toMatchObject([{ seq: 1, kind: "completed", at }]);
  });

  test("a page looks at few runs, and at many only where those were not enough", async () => {
    const world = createManualWorld();
    const looks: number[] = [];
    const store: Store = {
      ...world.store,
      listRuns(filter) {
        looks.push(filter.look);
        return world.store.listRuns(filter);
      },
    };
    const client = createClient(world.seams({ store }));
    const [first] = await client.startMany(greet, [{ input: "Ada", queue: "other" }]);
    await client.startMany(
      greet,
      Array.from({ length: 250 }, () => ({ input: "Grace" })),
    );
    const idsOf = ({ runs }: RunPage): readonly string[] => runs.map(({ id }) => id);
    expect(idsOf(await client.list({ limit: 1 }))).toHaveLength(1);
    expect(looks).toEqual([200]);
    expect(idsOf(await client.list({ queue: "other", limit: 1 }))).toEqual([first?.id]);
    expect(looks).toEqual([200, 200, 10_000]);
  });

  test("a run tells its tags and its times, also after its end", async () => {
    const { client, clock } = createManualWorld();
    const options = { tags: ["b", "a", "b"], delay: 1_000, expiresIn: 2_000, timeout: 3_000 };
    const { id } = await client.start(greet, "Ada", options);
    const inMs = (ms: number) => new Date(clock.now() + ms);
    const told = {
      tags: ["b", "a"],
      startAt: inMs(1_000),
      expiresAt: inMs(3_000),
      deadlineAt: inMs(4_000),
      attempt: 1,
    };
    expect(await client.get(id)).toMatchObject(told);
    await client.cancel(id);
    expect(await client.get(id)).toMatchObject({ ...told, status: "cancelled" });
  });

  test("what dead letters and retryAll are asked is checked under their own names", async () => {
    const { client } = createManualWorld();
    await expect(client.deadLetters({ status: "expired" } as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      details: { what: "deadLetters", problems: [{ option: "status" }] },
    });
    await expect(client.retryAll({ status: "running", limit: 0 } as never)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      details: { what: "retryAll", problems: [{ option: "status" }, { option: "limit" }] },
    });
    await expect(client.retryAll({ status: "completed" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    expect(await client.retryAll({ status: "completed" }, { from: "start" })).toBe(0);
    expect(await client.redriveAll()).toBe(0);
  });

  test("a list is newest first, filtered, and goes on where a page ended", async () => {
    const { client } = createManualWorld();
    const ids: string[] = [];
    for (const name of ["a", "b", "c", "d"]) ids.unshift((await client.start(greet, name)).id);
    await client.start(tick);
    await client.cancel(ids[1] ?? "");
    expect((await client.list({ workflow: "greet" })).runs.map(({ id }) => id)).toEqual(ids);
    expect((await client.list({ workflow: "greet", limit: 2 })).runs.map(({ id }) => id)).toEqual(
      ids.slice(0, 2),
    );
    expect((await client.list({ workflow: "greet", before: ids[1] ?? "" })).runs.map(({ id }) => id)).toEqual(
      ids.slice(2),
    );
    expect((await client.list({ status: "cancelled" })).runs.map(({ id }) => id)).toEqual([ids[1]]);
    await expect(client.list({ status: "done" } as never)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(client.list({ before: "not-an-id" })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  });
});
