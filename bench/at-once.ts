import { has, inDatabase, oneReading, withPostgresMs, type Workload } from "./workload.ts";

/** OpenWorkflow allows a workflow 1,000 steps, children included. */
const whoHasMore = ["pawl", "dbos"];

/** W6: one run that does much at once. */
export function atOnceWorkloads(): readonly Workload[] {
  return [
    atOnce("W6: 1,000 steps at once", "parallelSteps", 1_000),
    atOnce("W6: 1,000 children", "children", 1_000),
    atOnce("W6: 10,000 children (OpenWorkflow allows 1,000)", "children", 10_000),
  ];
}

function atOnce(name: string, method: "parallelSteps" | "children", count: number): Workload {
  return oneReading({
    name,
    unit: "ms",
    isFor: (product) => has(method)(product) && (count <= 1_000 || whoHasMore.includes(product.name)),
    measure: (product, ground) =>
      inDatabase(ground, product, async ({ first }) => {
        await first.call("work");
        await first.call(method, Math.ceil(count / 10));
        const [{ ms, cpuMs }, postgresMs] = await withPostgresMs(ground, count, () =>
          first.call(method, count),
        );
        return { value: ms, nodeMs: cpuMs / count, postgresMs };
      }),
  });
}
