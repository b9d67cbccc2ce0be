/** Named places where a process may die. Tests kill it there; nothing else knows of them. */
export type CrashPoint =
  | "claim.answered"
  | "step.before"
  | "step.after"
  | "undo.before"
  | "undo.after"
  | "record.before"
  | "record.after"
  | "park.before"
  | "park.after"
  | "end.before"
  | "end.after"
  | "heartbeat.before"
  | "sweep.before"
  | "cancel.recorded";

/** Called at every crash point. The default does nothing. */
export type Probe = (point: CrashPoint) => void;

export const noProbe: Probe = () => {};
