import { atOnceWorkloads } from "./at-once.ts";
import { backlogWorkloads } from "./backlog.ts";
import { costWorkloads } from "./cost.ts";
import { latencyWorkload } from "./latencies.ts";
import { longHistoryWorkloads } from "./long-history.ts";
import { rateWorkloads } from "./rates.ts";
import { wakeUpWorkloads } from "./wake-ups.ts";
import type { Size, Workload } from "./workload.ts";

export function createWorkloads(size: Size): readonly Workload[] {
  return [
    ...rateWorkloads(size),
    latencyWorkload(size),
    ...backlogWorkloads(size),
    ...atOnceWorkloads(),
    ...longHistoryWorkloads(size),
    ...costWorkloads(size),
    ...wakeUpWorkloads(size),
  ];
}
