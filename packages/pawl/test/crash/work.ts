import { setTimeout as pause } from "node:timers/promises";
import type { Ledger } from "./ledger.ts";

/** Where workers are killed every second, a run that is tried alone may well see three of them die. */
export const crashLimit = 1_000;

/** A step that leaves its mark, then takes its time. */
export async function work<T>(
  ledger: Ledger,
  runId: string,
  step: string,
  ms: number,
  result: T,
): Promise<T> {
  const line = await ledger.begin(runId, step);
  await pause(ms);
  await line.end();
  return result;
}
