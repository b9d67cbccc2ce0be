import { monitorEventLoopDelay } from "node:perf_hooks";
import type { LoadMeter } from "../core/load.ts";

/** How finely the event loop's lateness is looked at. Costs a timer of the platform. */
const resolutionMs = 20;

/** Measures this process from now on. */
export function startSystemLoad(): LoadMeter {
  const lag = monitorEventLoopDelay({ resolution: resolutionMs });
  lag.enable();
  let cpu = process.cpuUsage();
  let readAt = performance.now();
  return {
    read() {
      const used = process.cpuUsage(cpu);
      const now = performance.now();
      const cpuRatio = (used.user + used.system) / 1_000 / Math.max(1, now - readAt);
      // It measures the whole pause between two looks, the planned one included.
      const lagMs = Math.max(0, lag.max / 1e6 - resolutionMs);
      cpu = process.cpuUsage();
      readAt = now;
      lag.reset();
      return { memoryBytes: process.memoryUsage.rss(), cpuRatio, lagMs };
    },
    stop() {
      lag.disable();
    },
  };
}
