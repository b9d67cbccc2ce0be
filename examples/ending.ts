import { setTimeout as pause } from "node:timers/promises";
import { createPawl, PawlError, workflow, type RunHandle } from "pawl";

let isFixed = false;

/** Takes a minute, unless it is told to stop. */
const slow = workflow({ name: "slow", version: 1 }, async (ctx) => {
  await ctx.step("work", ({ signal }) => pause(60_000, undefined, { signal }));
});

const fragile = workflow({ name: "fragile", version: 1, retry: { attempts: 2, initial: 0 } }, async (ctx) => {
  await ctx.step("prepare", () => console.log("prepare"));
  await ctx.step("finish", () => {
    if (!isFixed) throw Object.assign(new Error("Not yet fixed"), { code: "E_BUG" });
  });
  return "finished";
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [slow, fragile] }).start();

/** Waits for the end, and tells how it ended. */
async function tellEnd(run: RunHandle): Promise<void> {
  try {
    console.log(await run.result());
  } catch (error) {
    if (!PawlError.is(error)) throw error;
    const { reason } = error.details;
    console.log(error.code, reason ?? (error.cause as Error | undefined)?.message ?? "");
  }
}

async function running(run: RunHandle): Promise<void> {
  while ((await run.status()) !== "running") await pause(10);
}

// Asked to stop: the step's signal aborts, the run's code sees it, and the run ends.
const asked = await pawl.start(slow);
await running(asked);
await asked.cancel("The customer left");
await tellEnd(asked);

// Ended on the spot, without its code.
const ended = await pawl.start(slow);
await running(ended);
await ended.terminate("Wrong input");
await tellEnd(ended);

// Too long.
await tellEnd(await pawl.start(slow, undefined, { timeout: "200ms" }));

// Waiting no longer does not end the run.
const awaited = await pawl.start(slow);
const stopWaiting = AbortSignal.timeout(100);
await awaited.result({ signal: stopWaiting }).catch((error: unknown) => console.log(String(error)));
await awaited.terminate();

// Kept back until it is resumed.
const kept = await pawl.start(fragile, undefined, { delay: "1d" });
await kept.pause();
console.log(await kept.status());
await kept.resume();
console.log(await kept.status());

// Failed for good: a dead letter. When its cause is gone, it goes on where it was: nothing is prepared again.
const letter = await pawl.start(fragile);
await tellEnd(letter);
const { runs } = await pawl.deadLetters({ workflow: "fragile", errorCode: "E_BUG" });
console.log(`Dead letters: ${runs.length}`);
isFixed = true;
console.log(`Retried: ${await pawl.retryAll({ workflow: "fragile" })}`);
await tellEnd(letter);
