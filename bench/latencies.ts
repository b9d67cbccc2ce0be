import type { Contestant, Product } from "./contestant.ts";
import type { Latencies } from "./driver.ts";
import { median } from "./median.ts";
import { quantile } from "./quantile.ts";
import { has, inDatabase, type Reading, type Size, type Workload } from "./workload.ts";

type Kind = keyof Latencies;

const names: Readonly<Record<Kind, string>> = {
  begins: "W4: start to handler, p50",
  results: "W4: start to result, p50",
  direct: "W4: start to result without a queue, p50",
  notices: "W4: notify on one connection until it is heard on another, p50",
};

const perCall = 25;

/** One at a time, on a machine that rests: all that a contestant has to tell comes from the same runs. */
export function latencyWorkload(size: Size): Workload {
  return {
    name: "W4: latencies",
    isFor: has("latencies"),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        if (product.name !== "limit") await first.call("work");
        await first.call("latencies", 10);
        const measured = await measure(first, size);
        return kindsOf(product).map((kind) => readingOf(kind, measured[kind]));
      }),
  };
}

/** A third of them will do for who is slow: a p99 takes a hundred, and who looks once a second takes minutes for that. */
async function measure(
  contestant: Contestant,
  { latencies: count, seconds }: Size,
): Promise<Readonly<Record<Kind, readonly number[]>>> {
  const all: Record<Kind, number[]> = { begins: [], results: [], direct: [], notices: [] };
  const beganAt = performance.now();
  const isSlow = (): boolean => performance.now() - beganAt > seconds * 10_000;
  for (let done = 0; done < count && !(done >= count / 3 && isSlow()); done += perCall) {
    const { answer } = await contestant.call("latencies", Math.min(perCall, count - done));
    for (const kind of Object.keys(all) as Kind[]) all[kind].push(...(answer[kind] ?? []));
  }
  return all;
}

function readingOf(kind: Kind, values: readonly number[]): Reading {
  const more = {
    "p95 ms": quantile(values, 0.95),
    "p99 ms": quantile(values, 0.99),
    latencies: values.length,
  };
  const figure = { value: median(values), nodeMs: null, postgresMs: null, more };
  return { name: names[kind], unit: "ms", figure };
}

/** A queue has no results. Only some can start without one. */
function kindsOf(product: Product): readonly Kind[] {
  if (product.name === "limit") return ["begins", "results", "direct", "notices"];
  if (!has("fiveSteps")(product)) return ["begins"];
  return ["pawl", "dbos"].includes(product.name) ? ["begins", "results", "direct"] : ["begins", "results"];
}
