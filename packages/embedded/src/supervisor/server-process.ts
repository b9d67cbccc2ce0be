import type { ChildProcess } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { isAlive } from "./postmaster.ts";

/** A server's process, be it our child or not. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<void>;
  hasEnded(): boolean;
}

/** Fast breaks off what clients do; immediate leaves the next start to recover, as after a crash. */
export type Haste = "fast" | "immediate";

const watchMs = 200;
const fastMs = 15_000;
const immediateMs = 5_000;

export function watchChild(child: ChildProcess): ServerProcess {
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      hasEnded = true;
      resolve();
    };
    child.once("exit", end);
    child.once("error", end);
  });
  return { pid: child.pid ?? 0, ended, hasEnded: () => hasEnded };
}

/** A process that is not our child does not tell us when it ends. */
export function watchStranger(pid: number): ServerProcess {
  const ended = new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (isAlive(pid)) return;
      clearInterval(timer);
      resolve();
    }, watchMs);
  });
  return { pid, ended, hasEnded: () => !isAlive(pid) };
}

/** Ends the server, with more force if it does not end in time. */
export async function stopServerProcess(server: ServerProcess, haste: Haste): Promise<void> {
  if (haste === "fast" && (await endsOn("SIGINT", server, fastMs))) return;
  if (await endsOn("SIGQUIT", server, immediateMs)) return;
  await endsOn("SIGKILL", server, immediateMs);
}

async function endsOn(signal: NodeJS.Signals, server: ServerProcess, withinMs: number): Promise<boolean> {
  try {
    if (!server.hasEnded()) process.kill(server.pid, signal);
  } catch {
    // Ended by itself.
  }
  const timeout = new AbortController();
  const late = delay(withinMs, false, { signal: timeout.signal }).catch(() => false);
  const isEnded = await Promise.race([server.ended.then(() => true), late]);
  timeout.abort();
  return isEnded;
}
