import pg from "pg";
import { backOffMs } from "../core/back-off.ts";
import type { Log } from "../core/log.ts";
import type { Random } from "../core/random.ts";
import { delay, type Timers } from "../core/timers.ts";
import type { Hint } from "../store/hint.ts";
import type { StoreReport } from "../store/store-report.ts";
import type { SchemaName } from "./schema-name.ts";

export interface Listener {
  start(): void;
  stop(): Promise<void>;
  /** False while hints do not arrive and only polling works. */
  isListening(): boolean;
  state(): ListenState;
}

export type ListenState = StoreReport["listening"];

interface ListenerOptions {
  readonly client: pg.ClientConfig;
  readonly schema: SchemaName;
  readonly timers: Timers;
  readonly random: Random;
  readonly log: Log;
  /** How often a silent connection is asked whether it is still there. */
  readonly checkMs: number;
  readonly onHint: (hint: Hint) => void;
  /** Hints no longer arrive, or arrive again. Default: nobody is told. */
  readonly onChange?: ((state: ListenState) => void) | undefined;
}

/**
 * One LISTEN connection a process, kept alive for ever. It is only ever a hint: whenever hints may have been lost it says
 * `reconnected`, and everybody looks once. Behind a transaction pooler it reports that and stays off.
 */
export function createListener(options: ListenerOptions): Listener {
  const { timers, random, log, onHint } = options;
  const stopping = new AbortController();
  let ended: Promise<void> = Promise.resolve();
  let state: ListenState = "off";
  let isStarted = false;
  const isStopping = (): boolean => stopping.signal.aborted;

  function become(next: ListenState): void {
    const before = state;
    state = next;
    // That it works from the beginning is no news.
    if (before !== next && !(before === "off" && next === "live") && !isStopping()) options.onChange?.(next);
  }

  async function listenForEver(): Promise<void> {
    let failures = 0;
    while (!isStopping()) {
      const outcome = await listenOnce(() => {
        failures = 0;
      });
      become(outcome === "pooled" ? "pooled" : "dead");
      if (outcome === "pooled" || isStopping()) return;
      failures++;
      await delay(timers, backOffMs(failures, random, 100, 5_000), stopping.signal);
    }
  }

  /** Resolves when the connection is gone. */
  async function listenOnce(onListening: () => void): Promise<"lost" | "pooled"> {
    const client = new pg.Client({
      ...options.client,
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      query_timeout: 5_000,
    });
    const gone = new AbortController();
    client.on("error", (error) => gone.abort(error));
    client.on("end", () => gone.abort(new Error("The connection has ended.")));
    client.on("notification", (message) => {
      for (const hint of parseHints(message.payload ?? "")) onHint(hint);
    });
    try {
      await client.connect();
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      if (rows[0]?.pid !== (client as { readonly processID?: number | null }).processID) {
        log.warn(
          "Notifications do not pass the connection pooler: polling instead. Give listenUrl a direct connection.",
        );
        return "pooled";
      }
      await client.query(`listen "${options.schema.channel}"`);
      become("live");
      onListening();
      onHint({ kind: "reconnected" });
      await watch(client, gone.signal);
    } catch (error) {
      if (!isStopping())
        log.warn("Lost the connection for notifications: polling until it is back.", { error });
    } finally {
      await closeQuietly(client);
    }
    return "lost";
  }

  /** Ends when told to stop, and throws once the connection is gone. A half-open one looks alive until it is asked. */
  async function watch(client: pg.Client, gone: AbortSignal): Promise<void> {
    const either = AbortSignal.any([gone, stopping.signal]);
    for (;;) {
      await delay(timers, options.checkMs, either);
      if (either.aborted) break;
      await client.query("select 1");
    }
    if (!isStopping()) gone.throwIfAborted();
  }

  return {
    start() {
      if (isStarted) return;
      isStarted = true;
      ended = listenForEver();
    },
    async stop() {
      stopping.abort();
      await ended;
    },
    isListening: () => state === "live",
    state: () => state,
  };
}

async function closeQuietly(client: pg.Client): Promise<void> {
  const { connection } = client as unknown as {
    readonly connection?: { readonly stream?: { destroy(): void } };
  };
  connection?.stream?.destroy();
  await Promise.resolve();
}

const kinds: Readonly<Record<string, "told" | "sent" | "ended" | "answered" | "written">> = {
  t: "told",
  s: "sent",
  e: "ended",
  a: "answered",
  w: "written",
};

/** Payloads as the functions of the schema write them: a letter, then a queue's name or ids without dashes. */
export function parseHints(payload: string): readonly Hint[] {
  const letter = payload.slice(0, 1);
  const rest = payload.slice(1);
  if (letter === "r") return [{ kind: "ready", queue: rest }];
  const kind = kinds[letter];
  if (kind === undefined) return [];
  return rest.split(",").map((id) => ({ kind, runId: dashed(id) }));
}

function dashed(id: string): string {
  return `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`;
}
