import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { programPath } from "../binaries.ts";
import { EmbeddedPostgresError } from "../embedded-postgres-error.ts";
import type { Folder } from "../folder.ts";
import type { RunningServer } from "../messages.ts";
import { postgresEnvironment } from "../program.ts";
import type { SupervisorConfig } from "../supervisor-config.ts";
import { findFreePort, tryPort } from "./port.ts";
import { findPostmaster, readPostmaster, waitUntilReady } from "./postmaster.ts";
import { serverArguments } from "./server-arguments.ts";
import type { ServerLog } from "./server-log.ts";
import {
  stopServerProcess,
  watchChild,
  watchStranger,
  type Haste,
  type ServerProcess,
} from "./server-process.ts";

/** A server that has become ready. */
export interface Server {
  readonly running: RunningServer;
  /** Resolves when it has ended, for whatever reason. */
  readonly ended: Promise<void>;
  stop(haste: Haste): Promise<void>;
}

const attempts = 6;
const retryMs = 150;
const lastWordsMs = 500;

/** Starts the server, or takes on the one that a killed supervisor has left. */
export async function startServer(
  folder: Folder,
  config: SupervisorConfig,
  log: ServerLog,
  signal: AbortSignal,
): Promise<Server> {
  const left = await findPostmaster(folder.cluster);
  if (left !== undefined) {
    const process = watchStranger(left.pid);
    if (await becomesReady(folder, process, signal))
      return describeServer(folder, config, process, left.port);
  }
  let preferred = config.port === 0 ? await readPort(folder) : config.port;
  for (let attempt = 1; ; attempt += 1) {
    const port = await findFreePort(preferred);
    const isLast = attempt === attempts;
    if (config.strictPort && port !== config.port) {
      // Often its last user has only just ended.
      if (isLast) throw portBusy(config.port);
      await delay(retryMs, undefined, { signal });
      continue;
    }
    // A server that ended in order has removed this. The children of one that was killed may still
    // be ending, and until they have, Postgres refuses to start.
    const wasKilled = (await readPostmaster(folder.cluster)) !== undefined;
    log.forget();
    const child = spawnServer(folder, config, port);
    if (child.stderr !== null) log.follow(child.stderr);
    const process = watchChild(child);
    if (await becomesReady(folder, process, signal)) {
      await writeFile(folder.port, String(port)).catch(() => undefined);
      return describeServer(folder, config, process, port);
    }
    const wasTaken = (await saysPortTaken(child, log)) || (await tryPort(port)) === undefined;
    if (isLast || !(wasTaken || wasKilled)) throw startFailed(folder, log, child);
    if (wasTaken) preferred = config.strictPort ? config.port : 0;
    else await delay(retryMs * attempt, undefined, { signal });
  }
}

/** Whoever took the port may have left it again: another server's search for a free one takes it for a moment. */
async function saysPortTaken(child: ChildProcess, log: ServerLog): Promise<boolean> {
  if (child.stderr?.closed === false)
    await Promise.race([once(child.stderr, "close").catch(() => undefined), delay(lastWordsMs)]);
  return log.tail().includes("could not create any TCP/IP sockets");
}

function spawnServer(folder: Folder, config: SupervisorConfig, port: number): ChildProcess {
  const { user, binaries } = config;
  return spawn(programPath(binaries.dir, "postgres"), serverArguments(folder.cluster, port, config), {
    cwd: "/",
    env: postgresEnvironment(),
    stdio: ["ignore", "ignore", "pipe"],
    windowsHide: true,
    ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
  });
}

/** Waits, and ends a server for which nobody waits any more. */
async function becomesReady(folder: Folder, server: ServerProcess, signal: AbortSignal): Promise<boolean> {
  const isWanted = (): boolean => !server.hasEnded() && !signal.aborted;
  const isReady = await waitUntilReady(folder.cluster, server.pid, isWanted);
  if (!isReady && !server.hasEnded()) await stopServerProcess(server, "fast");
  signal.throwIfAborted();
  return isReady;
}

async function describeServer(
  folder: Folder,
  config: SupervisorConfig,
  server: ServerProcess,
  port: number,
): Promise<Server> {
  const password = await readFile(folder.password, "utf8");
  return {
    running: { pid: server.pid, port, password, version: config.binaries.version },
    ended: server.ended,
    stop: (haste) => stopServerProcess(server, haste),
  };
}

async function readPort(folder: Folder): Promise<number> {
  const port = Number(await readFile(folder.port, "utf8").catch(() => "0"));
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : 0;
}

function portBusy(port: number): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "PORT_BUSY",
    `Port ${port} is taken by another program; end that, choose another port, or leave strictPort out.`,
    { port },
  );
}

function startFailed(folder: Folder, log: ServerLog, child: ChildProcess): EmbeddedPostgresError {
  const tail = log.tail();
  return new EmbeddedPostgresError(
    "START_FAILED",
    `Postgres in ${folder.dir} did not start; the end of its log is:\n${tail}`,
    { dir: folder.dir, exitCode: child.exitCode, log: tail },
  );
}
