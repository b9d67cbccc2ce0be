/** How a run can end. An ended run changes no more, unless it is redriven. */
export const endStatuses = ["completed", "failed", "cancelled", "timed_out", "expired"] as const;
/** How a run has ended. */
export type EndStatus = (typeof endStatuses)[number];

/** What people see of a run that has not ended: it follows from the room that holds it. */
export const liveStatuses = ["pending", "running", "waiting", "paused", "blocked"] as const;
/** How a run is that has not ended. */
export type LiveStatus = (typeof liveStatuses)[number];

/** What people see of a run. */
export type RunStatus = LiveStatus | EndStatus;

/** Why a run is parked. `delayed` and `retry` count as pending and waiting for people. */
export type ParkReason = "delayed" | "waiting" | "retry" | "paused" | "blocked";

export function statusOfParked(reason: ParkReason): RunStatus {
  switch (reason) {
    case "delayed":
      return "pending";
    case "waiting":
    case "retry":
      return "waiting";
    case "paused":
      return "paused";
    case "blocked":
      return "blocked";
    default:
      return reason satisfies never;
  }
}
