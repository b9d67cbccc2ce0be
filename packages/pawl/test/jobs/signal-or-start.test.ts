import { randomBytes } from "node:crypto";
import { describe, expect, expectTypeOf } from "vitest";
import { z } from "zod";
import { aesGcmCodec, workflow, type RunHandle, type SignalsOf } from "../../src/index.ts";
import { places, test, upTo, work } from "./job-test.ts";

/** Collects what it is sent until it is told to stop. */
function createCart(queue: string) {
  return workflow(
    {
      name: "cart",
      version: 1,
      queue,
      input: z.object({ customer: z.string() }),
      signals: { add: z.object({ item: z.string() }), close: z.undefined() },
    },
    async (ctx, { customer }) => {
      const items: string[] = [];
      for (;;) {
        const { item } = await ctx.waitForSignal("add");
        if (item === "end") return { customer, items };
        items.push(item);
      }
    },
  );
}

const codec = aesGcmCodec({ keys: [{ id: "1", key: randomBytes(32) }] });

describe.each(places)("signalOrStart in %s", (place) => {
  for (const [how, options] of [
    ["plain", {}],
    ["encrypted", { codec }],
  ] as const) {
    test(`starts a run with its first signal, and signals it from then on, ${how}`, async ({
      open,
      queue,
    }) => {
      const pawl = open(place, options);
      const cart = createCart(queue);
      await work(pawl, { workflows: [cart], queues: [queue] });
      const add = (item: string, customer = "ann") =>
        pawl.signalOrStart(cart, { key: queue, input: { customer }, signal: "add", payload: { item } });
      const first = await add("apple");
      const second = await add("pear", "bob");
      expect(second.id).toBe(first.id);
      await add("end");
      expect(await first.result()).toEqual({ customer: "ann", items: ["apple", "pear"] });
      await expect(add("late")).rejects.toMatchObject({ code: "RUN_ENDED", details: { runId: first.id } });
    });

    test(`many at once start one run, and each signal arrives once, ${how}`, async ({ open, queue }) => {
      const [one, other] = [open(place, options), open(place, options)];
      const cart = createCart(queue);
      const pawls = place === "memory" ? [one] : [one, other];
      await work(one, { workflows: [cart], queues: [queue] });
      const key = queue;
      const runs = await Promise.all(
        upTo(40).map((n) =>
          pawls[n % pawls.length]!.signalOrStart(cart, {
            key,
            input: { customer: "ann" },
            signal: "add",
            payload: { item: `${n % 20}` },
            idempotencyKey: `${n % 20}`,
          }),
        ),
      );
      expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
      await runs[0]!.signal("add", { item: "end" });
      const { items } = await runs[0]!.result();
      expect(items.toSorted()).toEqual(upTo(20).map(String).toSorted());
    });
  }

  test("refuses another workflow's key, unknown signals, and what does not fit", async ({ open, queue }) => {
    const pawl = open(place);
    const cart = createCart(queue);
    const other = workflow({ name: "other", version: 1, queue }, async () => {});
    const taken = await pawl.start(other, undefined, { key: queue });
    const input = { customer: "ann" };
    const good = { key: queue, input, signal: "add", payload: { item: "a" } } as const;
    await expect(pawl.signalOrStart(cart, good)).rejects.toMatchObject({
      code: "KEY_CONFLICT",
      details: { runId: taken.id },
    });
    for (const [wrong, code] of [
      [{ signal: "remove" }, "INVALID_NAME"],
      [{ payload: { item: 1 } }, "INVALID_PAYLOAD"],
      [{ input: {} }, "INVALID_PAYLOAD"],
      [{ key: undefined }, "INVALID_OPTION"],
      [{ onConflict: "reject" }, "INVALID_OPTION"],
      [{ sginal: "add" }, "INVALID_OPTION"],
    ] as const)
      await expect(pawl.signalOrStart(cart, { ...good, ...wrong } as never)).rejects.toMatchObject({ code });
    expect((await pawl.list({ queue })).runs).toHaveLength(1);
  });

  test("infers input, signals and payloads from the workflow", async ({ open, queue }) => {
    const pawl = open(place);
    const cart = createCart(queue);
    const key = queue;
    const input = { customer: "ann" };
    const run = await pawl.signalOrStart(cart, { key, input, signal: "close" });
    expectTypeOf(run).toExtend<RunHandle<{ customer: string; items: string[] }, SignalsOf<typeof cart>>>();
    const wrong = () => [
      // @ts-expect-error: an input is needed
      pawl.signalOrStart(cart, { key, signal: "close" }),
      // @ts-expect-error: so is the payload of this signal
      pawl.signalOrStart(cart, { key, input, signal: "add" }),
      // @ts-expect-error: there is no such signal
      pawl.signalOrStart(cart, { key, input, signal: "remove" }),
      // @ts-expect-error: the key is what it is about
      pawl.signalOrStart(cart, { input, signal: "close" }),
      // @ts-expect-error: this payload is another signal's
      pawl.signalOrStart(cart, { key, input, signal: "close", payload: { item: "a" } }),
    ];
    expect(wrong).toBeTypeOf("function");
    const any = workflow({ name: "any", version: 1, queue }, async () => {});
    await pawl.signalOrStart(any, { key: `${queue} any`, signal: "anything", payload: 1 });
  });
});

describe("onConflict", () => {
  test("needs a key", async ({ open, queue }) => {
    const pawl = open("memory");
    const job = workflow({ name: "job", version: 1, queue }, async () => {});
    const refused = { code: "INVALID_OPTION", message: expect.stringContaining('"onConflict"') };
    await expect(pawl.start(job, undefined, { onConflict: "reject" })).rejects.toMatchObject(refused);
    await expect(pawl.startMany(job, [{ onConflict: "return" }])).rejects.toMatchObject(refused);
    await pawl.startMany(job, [{ key: "a" }, {}], { onConflict: "reject" });
  });
});
