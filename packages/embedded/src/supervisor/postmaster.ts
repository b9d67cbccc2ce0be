import { readFileSync } from "node:fs";
import { readFile, readlink, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { runProgram } from "../program.ts";
import { hasSystemCode } from "../system-code.ts";

/** What a server writes about itself in `postmaster.pid`. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly status: string;
}

const pollMs = 10;

export async function readPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(pidFile(cluster), "utf8").catch(() => "");
  const lines = text.split("\n");
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3]), status: (lines[7] ?? "").trim() };
}

/** Waits until the server `pid` accepts connections. False: it has ended instead. */
export async function waitUntilReady(cluster: string, pid: number, isAlive: () => boolean): Promise<boolean> {
  while (isAlive()) {
    const postmaster = await readPostmaster(cluster);
    if (postmaster?.pid === pid && postmaster.status === "ready") return true;
    await delay(pollMs);
  }
  return false;
}

/**
 * The server that runs in the cluster though nobody looks after it, because its supervisor was
 * killed. A process that merely got a dead server's number is not one: Postgres itself would
 * take it for one and refuse to start, so its number is replaced by ours, which Postgres, as our
 * child, disregards. The rest of the file stays, as Postgres needs it to find the dead server's
 * children that still write.
 */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const postmaster = await readPostmaster(cluster);
  if (postmaster === undefined || !isAlive(postmaster.pid)) return undefined;
  if (await worksIn(postmaster.pid, cluster)) return postmaster;
  const text = await readFile(pidFile(cluster), "utf8");
  await writeFile(pidFile(cluster), text.replace(/^\d+/, String(process.pid)));
  return undefined;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    return hasSystemCode(error, "EPERM");
  }
}

/** Ended, but not reaped, as by the first process of a container that is not made for it. */
function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    return /^\d+ \(.*\) [ZX] /s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function worksIn(pid: number, cluster: string): Promise<boolean> {
  if (process.platform === "win32") return true;
  if (process.platform === "linux") {
    return (await readlink(`/proc/${pid}/cwd`).catch(() => "")) === (await realpath(cluster));
  }
  const { output } = await runProgram("ps", ["-ww", "-o", "command=", "-p", String(pid)]);
  return output.includes(cluster);
}

function pidFile(cluster: string): string {
  return join(cluster, "postmaster.pid");
}
