import { setTimeout as pause } from "node:timers/promises";
import { workflow } from "../../packages/pawl/src/index.ts";
import { HeldLine } from "./held-line.ts";
import { comesTrue, within, type Scene } from "./scene.ts";

/** Far longer than any scene: what is found before was announced. */
const never = "1h";

const startedBeforeListening: Scene = {
  name: "what is started while a worker begins to listen is executed at once",
  invariant: "I17",
  async play(props, report) {
    const line = props.own(await HeldLine.listen(props.url, "listen "));
    const pawl = props.connect({ url: line.url });
    const hello = workflow({ name: "hello", version: 1 }, async () => "hello");
    await pawl.worker({ workflows: [hello], pollInterval: never }).start();
    const letGo = await line.isHeld;
    // It looks around, and finds nothing.
    await pause(300);
    const run = await props.pawl.start(hello);
    await pause(100);
    letGo();
    if ((await within(run.result())) !== "hello")
      report("I17", "a run that was started before its worker listened waits for the next poll");
  },
};

/** Hints make it fast: without any, all of these would wait for a poll, or for the next heartbeat. */
const announced: Scene = {
  name: "what happens to a run is announced to the worker that it concerns",
  invariant: "I17",
  async play(props, report) {
    let stopped = (): void => {};
    const isStopped = new Promise<string>((resolve) => (stopped = () => resolve("stopped")));
    const hello = workflow({ name: "hello", version: 1 }, async () => "hello");
    const wait = workflow({ name: "wait", version: 1 }, (ctx) => ctx.waitForSignal("word"));
    const parent = workflow({ name: "parent", version: 1 }, (ctx) => ctx.call(wait));
    const stubborn = workflow({ name: "stubborn", version: 1 }, (ctx) =>
      ctx.step("stay", async ({ signal }) => {
        signal.addEventListener("abort", stopped);
        await isStopped;
      }),
    );
    const workflows = [hello, wait, parent, stubborn];
    await props.pawl.worker({ workflows, pollInterval: never, lease: "10m" }).start();
    // Before it listens, it has looked around.
    await within((await props.pawl.start(hello)).result());
    const expectSoon = async (what: string, happened: Promise<unknown>): Promise<void> => {
      if ((await within(happened)) === null) report("I17", `nobody was told of ${what}`);
    };
    const waiting = async (): Promise<string> => {
      const run = await props.pawl.start(wait);
      await comesTrue(async () => (await run.status()) === "waiting");
      return run.id;
    };

    const told = await waiting();
    await props.pawl.signal(told, "word", "told");
    await expectSoon("a signal", props.pawl.handle(told).result());

    const late = await waiting();
    const client = await props.pool.connect();
    await client.query("begin");
    await props.pawl.signal(late, "word", "late", { tx: client });
    await client.query("commit");
    client.release();
    await expectSoon("a signal in a transaction", props.pawl.handle(late).result());

    const family = await props.pawl.start(parent);
    const isBorn = (): Promise<readonly string[]> =>
      props.ask(
        "select p.run_id::text from {schema}.parked p join {schema}.run r on r.id = p.run_id where r.parent_id = $1",
        [family.id],
      );
    await comesTrue(async () => (await isBorn()).length > 0);
    for (const child of await isBorn()) await props.pawl.signal(child, "word", "child");
    await expectSoon("a child's end", family.result());

    const held = await props.pawl.start(stubborn);
    await comesTrue(async () => (await held.status()) === "running");
    await held.cancel();
    await expectSoon("a cancel", isStopped);
  },
};

const rolledBack: Scene = {
  name: "what is started or sent in a transaction that rolls back has never happened",
  invariant: "I1",
  async play(props, report) {
    const wait = workflow({ name: "wait", version: 1 }, (ctx) => ctx.waitForSignal("word"));
    await props.pawl.worker({ workflows: [wait] }).start();
    const run = await props.pawl.start(wait);
    const client = await props.pool.connect();
    await client.query("begin");
    const unborn = await props.pawl.start(wait, undefined, { tx: client, key: "one" });
    await props.pawl.signal(run.id, "word", "unsent", { tx: client, idempotencyKey: "one" });
    await props.pawl.cancel(run.id, { tx: client });
    await client.query("rollback");
    client.release();
    await props.pawl.signal(run.id, "word", "sent", { idempotencyKey: "one" });
    const word = await within(run.result());
    const another = await props.pawl
      .start(wait, undefined, { key: "one", onConflict: "reject" })
      .catch(String);
    if ((await props.pawl.get(unborn.id)) !== null || word !== "sent" || typeof another === "string")
      report("I1", "a transaction that was rolled back has left something behind", { word, another });
  },
};

const committedLate: Scene = {
  name: "a run whose transaction commits late is executed though later ones were",
  invariant: "I17",
  async play(props, report) {
    const hello = workflow({ name: "hello", version: 1 }, async (_ctx, name: string) => name);
    await props.pawl.worker({ workflows: [hello], concurrency: 10 }).start();
    const client = await props.pool.connect();
    await client.query("begin");
    const late = await props.pawl.start(hello, "late", { tx: client });
    await pause(100);
    for (const name of ["one", "two"]) await (await props.pawl.start(hello, name)).result();
    await client.query("commit");
    client.release();
    if ((await within(late.result())) !== "late")
      report("I17", "a run that was committed late is not executed", await late.status());
  },
};

const toldLate: Scene = {
  name: "a signal whose transaction commits late is taken though a later one was",
  invariant: "I17",
  async play(props, report) {
    const listen = workflow({ name: "listen", version: 1 }, async (ctx) => [
      await ctx.waitForSignal("word"),
      await ctx.waitForSignal("word"),
    ]);
    await props.pawl.worker({ workflows: [listen] }).start();
    const run = await props.pawl.start(listen);
    const client = await props.pool.connect();
    await client.query("begin");
    await props.pawl.signal(run.id, "word", "first", { tx: client });
    await pause(20);
    await props.pawl.signal(run.id, "word", "second");
    const isTaken = await comesTrue(async () =>
      (await props.factsOf(run.id)).some((fact) => fact.startsWith("signal_received")),
    );
    await client.query("commit");
    client.release();
    const words = await within(run.result());
    if (!isTaken || JSON.stringify(words) !== `["second","first"]`)
      report("I10", "a signal that was committed late is not taken", { isTaken, words });
  },
};

export const hearing: readonly Scene[] = [
  startedBeforeListening,
  announced,
  rolledBack,
  committedLate,
  toldLate,
];
