import { setTimeout as wait } from "node:timers/promises";
import { createPawl, dag, settled, workflow, type RunHandle, type Settled } from "pawl";
import { z } from "zod";

interface Rows {
  readonly day: string;
  readonly count: number;
}

/** The warehouse's disk is full until somebody makes room. */
let isDiskFull = true;

const extract = workflow({ name: "extract", version: 1 }, async (ctx, { day }: { day: string }) =>
  ctx.step("read", (): Rows => {
    console.log(`extract ${day}`);
    return { day, count: 1_000 };
  }),
);

const clean = workflow({ name: "clean", version: 1 }, async (ctx, { rows }: { rows: Rows }) =>
  ctx.step("drop doubles", (): Rows => ({ ...rows, count: rows.count - 10 })),
);

const mirror = workflow(
  { name: "mirror", version: 1, retry: { attempts: 1 } },
  async (ctx, { region }: { region: string; rows: Rows }) =>
    ctx.step("copy", () => {
      if (region === "moon") throw new Error("The moon does not answer");
      return region;
    }),
);

const audit = workflow(
  { name: "audit", version: 1 },
  async (_, { rows, copies }: { rows: Rows; copies: Settled<string[]> }) => ({
    ok: rows.count > 0,
    copies: copies.status,
  }),
);

const load = workflow(
  { name: "load", version: 1, retry: { attempts: 1 } },
  async (ctx, { rows }: { rows: Rows; audit: { ok: boolean } }) =>
    ctx.step("insert", () => {
      if (isDiskFull) throw new Error("No space left on device");
      return `${rows.count} rows of ${rows.day}`;
    }),
);

const nightly = dag(
  { name: "nightly", version: 1, input: z.object({ day: z.string() }), onError: "pause" },
  (g) => {
    const extracted = g.node("extract", extract, { day: g.input.day });
    const cleaned = g.node("clean", clean, { rows: extracted }, { priority: 10, timeout: "1h" });
    const copies = g.each("mirror", ["eu", "us", "moon"], mirror, (region) => ({ region, rows: cleaned }), {
      concurrency: 4,
    });
    const audited = g.node("audit", audit, { rows: cleaned, copies: settled(copies) });
    return g.node("load", load, { rows: cleaned, audit: audited }, { when: (input) => input.audit.ok });
  },
);

async function show(run: RunHandle): Promise<void> {
  for (const { name, state, reason } of await run.nodes())
    console.log(`  ${name}: ${state}${reason === null ? "" : ` (${reason})`}`);
}

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [nightly, extract, clean, mirror, audit, load] }).start();

const run = await pawl.start(nightly, { day: "2026-11-15" }, { key: "nightly:2026-11-15" });
while ((await run.status()) !== "paused") await wait(20);
console.log("paused");
await show(run);

// The operator makes room, and lets the night go on: what was finished stays finished.
isDiskFull = false;
await run.resume();
console.log(await run.result());
await show(run);
