import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "./eventually.ts";

export const isRoot = process.getuid?.() === 0;

/** The number that the server of a folder has written down. */
export function serverPid(dir: string): number {
  return Number(readFileSync(join(dir, "data", "postmaster.pid"), "utf8").split("\n")[0]);
}

export function supervisorPid(dir: string): number {
  return Number(ask("ppid", serverPid(dir)));
}

export function userOf(pid: number): number {
  return Number(ask("uid", pid));
}

function ask(column: string, pid: number): string {
  return execFileSync("ps", ["-o", `${column}=`, "-p", String(pid)], { encoding: "utf8" }).trim();
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // Ended, and not yet noticed by a parent that does not care, as in a container without an init.
  return !ask("stat", pid).startsWith("Z");
}

export async function expectEnd(...pids: readonly number[]): Promise<void> {
  await eventually(() => pids.filter(isRunning)).toEqual([]);
}

export async function expectGone(path: string): Promise<void> {
  await eventually(() => existsSync(path)).toBe(false);
}
