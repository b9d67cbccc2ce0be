import { setTimeout as pause } from "node:timers/promises";
import type { Contestant } from "./contestant.ts";
import { openGround } from "./ground.ts";
import { createMeter } from "./meter.ts";
import { createWalMeter } from "./wal.ts";
import {
  has,
  inDatabase,
  oneReading,
  type Reading,
  type Size,
  type Unit,
  type Workload,
} from "./workload.ts";

const inFlight = 200;
const stepsPerRun = 5;

/** W8: what a run costs: memory of the worker, and calls, commits and WAL of Postgres. */
export function costWorkloads(size: Size): readonly Workload[] {
  return [
    memory("W8: memory of a worker that has nothing to do", async (first) => {
      await first.call("work");
      await pause(3_000);
      return first.call("rest");
    }),
    memory("W8: memory of a worker with 200 of five steps in flight", async (first) => {
      await first.call("work");
      return first.call("fiveSteps", Math.ceil(size.seconds * 2_000), inFlight);
    }),
    postgresCost(size),
  ];
}

function memory(name: string, act: (first: Contestant) => Promise<{ readonly rssMb: number }>): Workload {
  return oneReading({
    name,
    unit: "MB",
    isFor: has("rest"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        const { rssMb } = await act(first);
        return { value: rssMb, nodeMs: null, postgresMs: null };
      }),
  });
}

/** What Postgres was asked for and wrote, for each. */
interface Cost {
  readonly calls: number;
  readonly commits: number;
  readonly walBytes: number;
  readonly imageBytes: number;
}

/** On a Postgres of its own, since counting is not free, and nobody else may be counted. Starts and results are included. */
function postgresCost({ seconds }: Size): Workload {
  return {
    name: "W8: calls, commits and WAL",
    isFor: has("plainRuns", "fiveSteps"),
    async measure(product) {
      const ground = await openGround({ shared_preload_libraries: "pg_stat_statements" });
      try {
        return await inDatabase(ground, product, async ({ first, url }) => {
          const count = Math.max(inFlight, Math.ceil(seconds * 2_000));
          await first.call("work");
          const costs = [];
          for (const method of ["plainRuns", "fiveSteps"] as const) {
            await first.call(method, count, inFlight);
            costs.push(await costOf(url, count, () => first.call(method, count, inFlight)));
          }
          const [plain, five] = costs as [Cost, Cost];
          return [
            readingOf("a plain run", "bytes", plain),
            readingOf("a run of five steps", "bytes", five),
            readingOf("a step, a fifth of such a run", "calls", shareOf(five, stepsPerRun)),
          ];
        });
      } finally {
        await ground.close();
      }
    },
  };
}

async function costOf(url: string, count: number, work: () => Promise<unknown>): Promise<Cost> {
  const [meter, walMeter] = [await createMeter(url), await createWalMeter(url)];
  const { answer, bytes, imageBytes } = await walMeter.measure(() =>
    meter.count(async () => void (await work())),
  );
  await meter.close();
  await walMeter.close();
  return shareOf({ calls: answer.calls, commits: answer.commits, walBytes: bytes, imageBytes }, count);
}

function shareOf({ calls, commits, walBytes, imageBytes }: Cost, count: number): Cost {
  return {
    calls: calls / count,
    commits: commits / count,
    walBytes: walBytes / count,
    imageBytes: imageBytes / count,
  };
}

function readingOf(of: string, unit: Extract<Unit, "calls" | "bytes">, cost: Cost): Reading {
  const { calls, commits, walBytes, imageBytes } = cost;
  const images = { commits, "bytes of full-page images apart": imageBytes };
  const figure =
    unit === "calls"
      ? { value: calls, more: { "bytes of WAL": walBytes, ...images } }
      : { value: walBytes, more: { calls, ...images } };
  const what = unit === "calls" ? "calls" : "WAL";
  return {
    name: `W8: ${what} for ${of}, ${inFlight} in flight`,
    unit,
    figure: { nodeMs: null, postgresMs: null, ...figure },
  };
}
