import { describe, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { aesGcmCodec } from "../../src/codec/aes-gcm-codec.ts";
import type { PayloadCodec } from "../../src/core/payload-codec.ts";
import { createPayloads } from "../../src/core/payloads.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { plainRun } from "../../src/store/run-record.ts";
import { createWorker, type Worker } from "../../src/worker/worker.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

const aes = (fill: number): PayloadCodec =>
  aesGcmCodec({ keys: [{ id: "k", key: new Uint8Array(32).fill(fill) }] });

/** Takes no input, so that any process can begin it. */
const journey = workflow({ name: "journey", version: 1 }, async (ctx, input?: unknown) => {
  const kept = await ctx.step("keep", () => "secret");
  await ctx.sleep("1h");
  return { input, kept, signal: await ctx.waitForSignal("go") };
});

function createScene(world: ManualWorld = createManualWorld()) {
  const clientWith = (codec?: PayloadCodec) =>
    createClient({ ...world.seams(), payloads: createPayloads({ codec }) });
  const startWorker = async (codec?: PayloadCodec): Promise<Worker> => {
    const worker = createWorker(
      { ...world.seams(), payloads: createPayloads({ codec }) },
      { workflows: [journey] },
    );
    await worker.start();
    await world.advance("10s");
    return worker;
  };
  return { world, clientWith, startWorker };
}

describe.each([
  ["no codec", undefined, 'was written with the codec "aes-gcm", and this process has none'],
  ["another key", aes(2), "cannot be decrypted: the key is another one"],
])("a worker with %s", (_name, wrong, fault) => {
  test("blocks a run whose input it cannot read, and one that can completes it", async () => {
    const { world, clientWith, startWorker } = createScene();
    const client = clientWith(aes(1));
    const run = await client.start(journey, { a: 1 });
    const lame = await startWorker(wrong);
    expect(await run.status()).toBe("blocked");
    expect(world.lines.filter(({ level }) => level === "error")[1]!.message).toContain(fault);
    await lame.stop();

    const worker = await startWorker(aes(1));
    await run.signal("go", "now");
    await world.advance("2h");
    expect(await run.result()).toEqual({ input: { a: 1 }, kept: "secret", signal: "now" });
    expect((await run.history()).find(({ kind }) => kind === "blocked")!.data).toMatchObject({
      message: expect.stringContaining(fault),
    });
    await worker.stop();
  });

  test("blocks a run whose history it cannot read", async () => {
    const { world, clientWith, startWorker } = createScene();
    const client = clientWith(aes(1));
    const run = await client.start(journey);
    const first = await startWorker(aes(1));
    expect(await run.status()).toBe("waiting");
    await first.stop();

    const lame = await startWorker(wrong);
    await world.advance("1h");
    expect(await run.status()).toBe("blocked");
    await lame.stop();

    const worker = await startWorker(aes(1));
    await run.signal("go", "now");
    await world.advance("1h");
    expect(await run.result()).toMatchObject({ kept: "secret", signal: "now" });
    await worker.stop();
  });

  test("says the same once only, however long it takes", async () => {
    const { world, clientWith, startWorker } = createScene();
    const run = await clientWith(aes(1)).start(journey, 1);
    const lame = await startWorker(wrong);
    await world.advance("6h");
    expect((await run.history()).length).toBeLessThan(12);
    expect(await run.status()).toBe("blocked");
    await run.cancel();
    await world.advance("1m");
    expect(await run.status()).toBe("cancelled");
    await lame.stop();
  });
});

test("a worker without the codec blocks a run that gets a signal it cannot read, and leaves the signal unread", async () => {
  const { world, clientWith, startWorker } = createScene();
  const run = await clientWith().start(journey);
  const lame = await startWorker();
  await world.advance("2h");
  expect(await run.status()).toBe("waiting");
  const client = clientWith(aes(1));
  await client.signal(run.id, "go", { to: "sea" });
  await world.advance("1s");
  expect(await run.status()).toBe("blocked");
  await lame.stop();

  const worker = await startWorker(aes(1));
  expect(await client.handle(run.id).result()).toMatchObject({ signal: { to: "sea" } });
  await worker.stop();
});

test("a codec that is out of order fails no run that has done its work, nor one that calls a child", async () => {
  const child = workflow({ name: "child", version: 1 }, async (_ctx, input: string) => input);
  const parent = workflow({ name: "parent", version: 1 }, async (ctx, input: string) =>
    ctx.call(child, input),
  );
  const world = createManualWorld();
  const working = aes(1);
  let isBroken = true;
  const codec: PayloadCodec = {
    ...working,
    encode(plain, place) {
      if (isBroken) throw new Error("out of order");
      return working.encode(plain, place);
    },
  };
  const client = createClient({ ...world.seams(), payloads: createPayloads({ codec: working }) });
  const runs = [await client.start(child, "a"), await client.start(parent, "b")];
  const deps = { ...world.seams(), payloads: createPayloads({ codec }) };
  const worker = createWorker(deps, { workflows: [child, parent] });
  await worker.start();
  await world.advance("1s");
  for (const run of runs) {
    expect(await run.status()).toBe("blocked");
    expect((await run.history()).at(-1)!.data).toMatchObject({
      message: expect.stringContaining("could not encode a payload."),
    });
  }
  isBroken = false;
  await world.advance("1m");
  const outputs = runs.map(async ({ id }) => (await client.get(id))!.output);
  expect(await Promise.all(outputs)).toEqual(["a", "b"]);
  await worker.stop();
});

test("a value of a newer version blocks the run, and does not fail it", async () => {
  const { world, startWorker } = createScene();
  const id = world.seams().ids.next();
  await world.store.createRuns([
    {
      id,
      workflow: "journey",
      version: 1,
      queue: "default",
      ...plainRun,
      input: { json: '"1d"', notes: '{"types":"Temporal.Duration"}' },
    },
  ]);
  const worker = await startWorker();
  expect((await world.store.getRun(id))!.status).toBe("blocked");
  await worker.stop();
});
