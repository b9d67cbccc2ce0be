import type { Plan } from "../sim/plan.ts";

/** Nothing goes wrong by chance. Two workers: one takes over what the other leaves. */
export function calm(drawn: Plan): Plan {
  const leaseMs = 1_500;
  const activeMs = 0.2 * leaseMs;
  return {
    ...drawn,
    leaseMs,
    pollMs: 0.4 * leaseMs,
    workers: 2,
    clients: 1,
    roots: 1,
    programSize: 10,
    crashLimit: 1_000,
    activeMs,
    faultMs: activeMs + 6 * leaseMs,
    latencyMs: 1,
    longMs: 0,
    calls: { dropped: 0, unanswered: 0, overtaken: 0, delayed: 0, heldUp: 0 },
    hints: { lost: 0, late: 0, twice: 0 },
    processes: {
      pauseMs: null,
      killMs: null,
      // Now and then a worker stops in good order.
      stopMs: drawn.processes.stopMs === null ? null : 2 * leaseMs,
      point: null,
      atPoint: "crash",
      pointRate: 0,
    },
    skewMs: 0,
    retryMs: 20,
  };
}
