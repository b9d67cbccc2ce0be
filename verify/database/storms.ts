import { setTimeout as pause } from "node:timers/promises";
import { workflow, type Log } from "../../packages/pawl/src/index.ts";
import { comesTrue, within, type Scene } from "./scene.ts";

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

const jobs = 1_500;
/** So few that each claim leaves a part of what was started together. */
const slots = [1, 2, 3, 5, 7, 11] as const;

/** Runs that were started together share a row, which claims cut while others look at it. */
const cutAtOnce: Scene = {
  name: "runs that were started together are executed once, though many claim parts of them at once",
  invariant: "I3",
  async play(props, report) {
    const calls = new Map<string, number>();
    const job = workflow({ name: "job", version: 1 }, async (ctx) => {
      calls.set(ctx.run.id, (calls.get(ctx.run.id) ?? 0) + 1);
    });
    await props.pawl.startMany(
      job,
      Array.from({ length: jobs }, () => ({})),
    );
    const workers = slots.map((concurrency) => props.connect().worker({ workflows: [job], concurrency }));
    await Promise.all(workers.map((worker) => worker.start()));
    if (!(await comesTrue(() => calls.size === jobs, 40_000)))
      report("I17", `${jobs - calls.size} of ${jobs} runs were not executed`);
    await Promise.all(workers.map((worker) => worker.stop()));
    const again = [...calls].filter(([, times]) => times > 1);
    if (again.length > 0)
      report("I3", `${again.length} of ${jobs} runs were executed again`, ...again.slice(0, 3));
  },
};

export const storms: readonly Scene[] = [toldWhileParking, cutAtOnce];
