import { rm } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { EmbeddedPostgresError } from "../embedded-postgres-error.ts";
import { folderAt } from "../folder.ts";
import { beat, beatMs, endHeartbeat } from "../heartbeat.ts";
import { findPlace } from "../place.ts";
import { addressPath, holdsSeat, takeSeat } from "../seat.ts";
import type { SupervisorConfig } from "../supervisor-config.ts";
import { ensureCluster } from "./cluster.ts";
import { listenForOwners } from "./listener.ts";
import { Owners } from "./owners.ts";
import { ServerLog } from "./server-log.ts";
import { startServer, type Server } from "./server.ts";

/** A server that ends this soon after its start has not recovered by being started again. */
const soonMs = 5_000;
const soonEndsAllowed = 3;

/** Looks after the folder's server for as long as it has owners, of whom `first` is one. */
export async function supervise(config: SupervisorConfig, first: Duplex): Promise<void> {
  const owners = new Owners();
  owners.admit(first);
  try {
    const listener = await listenForOwners((stream) => owners.greet(stream));
    try {
      await serveFolder(config, owners, listener.path);
    } catch (error) {
      owners.fail(describe(error));
    } finally {
      // Whoever waits for the end of this may start anew at once: nothing is touched after it.
      await owners.hangUp();
      await listener.close();
    }
  } catch (error) {
    owners.fail(describe(error));
    await owners.hangUp();
  }
}

async function serveFolder(config: SupervisorConfig, owners: Owners, path: string): Promise<void> {
  const seat = await takeSeat(config.dir, { path, place: await findPlace() });
  if (seat === undefined) return owners.close();
  const heart = addressPath(config.dir, seat);
  const timer = setInterval(() => void beat(heart), beatMs);
  try {
    await serveOwners(config, owners, () => holdsSeat(config.dir, seat));
  } finally {
    owners.close();
    clearInterval(timer);
    await endHeartbeat(heart);
    if (config.temporary) await rm(config.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function serveOwners(
  config: SupervisorConfig,
  owners: Owners,
  isOurs: () => Promise<boolean>,
): Promise<void> {
  const folder = folderAt(config.dir);
  const log = await ServerLog.open(folder, (line) => owners.tell({ kind: "log", line }));
  const signal = owners.allGone;
  try {
    await ensureCluster(folder, config, signal);
    let wanted = config;
    for (let soonEnds = 0; soonEnds < soonEndsAllowed;) {
      const server = await startServer(folder, wanted, log, signal);
      const startedAt = performance.now();
      owners.announce(server.running);
      const first = await firstOf(server, signal);
      // Should our address have been lost, another took us for dead and the seat from us.
      if (!(await isOurs())) return;
      if (first === "owners gone") return await server.stop(config.temporary ? "immediate" : "fast");
      // It crashed. Its owners know it by its port.
      wanted = { ...config, port: server.running.port, strictPort: true };
      if (performance.now() - startedAt < soonMs) soonEnds += 1;
    }
    throw new EmbeddedPostgresError(
      "START_FAILED",
      `Postgres in ${config.dir} ended ${soonEndsAllowed} times right after its start; the end of its log is:\n${log.tail()}`,
      { dir: config.dir, log: log.tail() },
    );
  } catch (error) {
    // Nobody is left who wanted to know.
    if (!signal.aborted) throw error;
  } finally {
    await log.close();
  }
}

function firstOf(server: Server, signal: AbortSignal): Promise<"owners gone" | "server ended"> {
  const gone = new Promise<"owners gone">((resolve) => {
    if (signal.aborted) resolve("owners gone");
    else signal.addEventListener("abort", () => resolve("owners gone"), { once: true });
  });
  return Promise.race([gone, server.ended.then(() => "server ended" as const)]);
}

function describe(error: unknown): EmbeddedPostgresError {
  if (EmbeddedPostgresError.is(error)) return error;
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return new EmbeddedPostgresError("START_FAILED", `Postgres could not be started: ${String(error)}.`, {
    reason,
  });
}
