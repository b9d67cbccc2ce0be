import { readFile } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { onMessage, sendMessage, type RunningServer, type SupervisorMessage } from "./messages.ts";
import { findPlace } from "./place.ts";
import { callHolder, findSeat } from "./seat.ts";
import { spawnSupervisor, supervisorLog } from "./spawn-supervisor.ts";
import type { SupervisorConfig } from "./supervisor-config.ts";

/** Our part in owning a server: it lives as long as someone has one of these. */
export interface Membership {
  readonly server: RunningServer;
  /** Resolves when the supervisor has hung up: because we left, or because it died. */
  readonly ended: Promise<void>;
  /** Gives up our part. Resolves once the server has ended, if nobody else has a part in it. */
  leave(): Promise<void>;
}

/** What a new owner wants besides a server. */
export interface JoinOptions {
  readonly log?: ((line: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How often a supervisor may end without a word before that is a fault of ours. */
const silentEndsAllowed = 5;

/** Becomes an owner of the folder's server, and starts it if nobody has. */
export async function joinServer(config: SupervisorConfig, options: JoinOptions): Promise<Membership> {
  for (let silentEnds = 0; silentEnds < silentEndsAllowed;) {
    options.signal?.throwIfAborted();
    const stream = (await callSupervisor(config.dir)) ?? (await spawnSupervisor(config));
    const membership = await introduce(stream, options);
    if (typeof membership === "object") return membership;
    if (membership === "silent") silentEnds += 1;
    await delay(20);
  }
  const log = await readFile(supervisorLog(config.dir), "utf8").catch(() => "");
  throw new EmbeddedPostgresError(
    "SUPERVISOR_LOST",
    `The process that looks after Postgres in ${config.dir} ended without a word; see details.log, and report this.`,
    { dir: config.dir, log: log.slice(-4000) },
  );
}

async function callSupervisor(dir: string): Promise<Duplex | undefined> {
  const seat = await findSeat(dir);
  // Whether one in another place lives is for a new supervisor to find out.
  return seat === undefined || seat.address.place !== (await findPlace()) ? undefined : callHolder(seat);
}

function introduce(stream: Duplex, options: JoinOptions): Promise<Membership | "closing" | "silent"> {
  const { log, signal } = options;
  return new Promise((resolve, reject) => {
    let isClosing = false;
    const ended = new Promise<void>((end) => {
      stream.once("close", end);
    });
    // Having left, we are hung up on when nothing of what we began remains.
    const abort = (): void => sendMessage(stream, { kind: "leave" });
    signal?.addEventListener("abort", abort, { once: true });
    // The end of the connection says all there is to know: 'close' follows every error.
    stream.on("error", () => undefined);
    stream.once("close", () => {
      signal?.removeEventListener("abort", abort);
      if (signal?.aborted) reject(signal.reason);
      else resolve(isClosing ? "closing" : "silent");
    });
    onMessage<SupervisorMessage>(stream, (message) => {
      switch (message.kind) {
        case "log":
          return log?.(message.line);
        case "closing":
          isClosing = true;
          return;
        case "failed":
          return reject(new EmbeddedPostgresError(message.code, message.message, message.details));
        case "ready":
          if (signal?.aborted) return;
          signal?.removeEventListener("abort", abort);
          setReferenced(stream, false);
          return resolve(createMembership(stream, message.server, ended));
        default:
          return message satisfies never;
      }
    });
    sendMessage(stream, { kind: "hello", wantsLog: log !== undefined });
    if (signal?.aborted) abort();
  });
}

function createMembership(stream: Duplex, server: RunningServer, ended: Promise<void>): Membership {
  return {
    server,
    ended,
    leave() {
      setReferenced(stream, true);
      sendMessage(stream, { kind: "leave" });
      return ended;
    },
  };
}

/** An owner that has nothing else to do may exit: the supervisor notices. */
function setReferenced(stream: Duplex, isReferenced: boolean): void {
  const handle = stream as Duplex & { ref?(): void; unref?(): void };
  if (isReferenced) handle.ref?.();
  else handle.unref?.();
}
