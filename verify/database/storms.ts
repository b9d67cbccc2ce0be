import { setTimeout as pause } from "node:timers/promises";
import { workflow, type Log } from "../../packages/pawl/src/index.ts";
import { within, type Scene } from "./scene.ts";

const runs = 40;
const rounds = 6;
/** A run that has nothing to do is parked after some ms; on a busy machine, after many. */
const longestMs = 60;

/** Whoever tells a run and whoever parks it must see each other; a sweep that has to make up for it says so. */
const toldWhileParking: Scene = {
  name: "what a run waits for finds it though it comes while the run is being parked",
  invariant: "I23",
  async play(props, report) {
    const said: string[] = [];
    const note = (message: string): void => void said.push(message);
    const silent = (): void => {};
    const log: Log = { debug: silent, info: silent, warn: note, error: note };
    const sender = props.connect();
    const soon = (): Promise<void> => pause(Math.random() ** 3 * longestMs);
    const quick = workflow({ name: "quick", version: 1 }, () => soon());
    const busy = workflow({ name: "busy", version: 1 }, async (ctx) => {
      for (let round = 0; round < rounds; round++) {
        await ctx.step("send", () => void soon().then(() => sender.signal(ctx.run.id, "word", round)));
        const word = await ctx.waitForSignal("word");
        if (word !== round) return `heard ${String(word)} in round ${round}`;
        const child = await ctx.start(quick);
        await ctx.step("pause", soon);
        await child.result();
      }
      return "done";
    });
    for (const pawl of [props.connect({ log }), props.connect({ log })])
      await pawl.worker({ workflows: [busy, quick], concurrency: runs, stickyRuns: 0 }).start();
    const started = await props.pawl.startMany(
      busy,
      Array.from({ length: runs }, () => ({})),
    );
    const ends = await Promise.all(started.map((run) => within(run.result(), 40_000)));
    const wrong = ends.filter((end) => end !== "done");
    if (wrong.length > 0) report("I17", `${wrong.length} of ${runs} runs did not complete`, String(wrong[0]));
    const rescues = said.filter((message) => message.startsWith("Woke runs"));
    if (rescues.length > 0) report("I23", "the sweep had to wake runs whose message was there", ...rescues);
  },
};

export const storms: readonly Scene[] = [toldWhileParking];
