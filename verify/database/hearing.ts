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

export const hearing: readonly Scene[] = [startedBeforeListening, committedLate, toldLate];
