/** The tables whose rows are the store's state. */
export const storeTables = [
  "run",
  "ready",
  "pack",
  "lease",
  "parked",
  "event",
  "inbox",
  "key",
  "worker",
  "worker_sample",
  "queue",
  "stopped",
  "stream",
  "tag",
] as const;
