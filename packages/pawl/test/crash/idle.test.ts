import { readFileSync, readdirSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { PrivateServer } from "pawl-test-support/private-server";
import type pg from "pg";
import { describe, expect } from "vitest";
import { readStatementStats, resetStatementStats } from "../postgres/statement-stats.ts";
import { test as sceneTest } from "./scene.ts";

/** `PAWL_IDLE_SECONDS=60` measures for a minute, with and without the worker. */
const seconds = Number(process.env["PAWL_IDLE_SECONDS"] ?? 11);

// Transaction ids and processor time are the whole server's: nobody else may use it.
const test = sceneTest
  .extend("server", { scope: "file" }, async ({}, { onCleanup }) => {
    const server = await PrivateServer.start({
      autovacuum: "off",
      shared_preload_libraries: "pg_stat_statements",
    });
    onCleanup(() => server[Symbol.asyncDispose]());
    return server;
  })
  .override("database", { scope: "file" }, async ({ server }) => {
    const name = "idle";
    return { name, url: await server.createDatabase(name) };
  });

describe("an idle worker", { timeout: 2 * seconds * 1_000 + 40_000 }, () => {
  test("takes no transaction ids, but for a heartbeat a minute", async ({ scene, server }) => {
    const { pool } = scene;
    const baseline = await measure(pool, server.pid);
    const worker = await scene.crew({ lease: "15s", concurrency: 100 }).hire();
    // Its first looks, and its connections.
    await pause(2_000);
    const idle = await measure(pool, server.pid);
    expect(await countWorkers(pool, scene.schema, worker.pid)).toBe(1);
    console.info(
      `idle: ${seconds} s, ${idle.statements} statements, ${idle.heartbeats} heartbeats,`,
      `${idle.ids} transaction ids, ${idle.processorMs} ms of processor time`,
      `(${(idle.processorMs / seconds / 10).toFixed(2)} % of a core; without it ${baseline.processorMs} ms and ${baseline.ids} ids)`,
    );
    expect(baseline.ids).toBe(0);
    expect(idle.statements).toBeGreaterThan(0);
    expect(idle.heartbeats).toBeLessThanOrEqual(Math.floor(seconds / 50));
    expect(idle.ids).toBeLessThanOrEqual(idle.heartbeats);
    expect(idle.processorMs).toBeLessThan(seconds * 10 + 200);
  });
});

interface Usage {
  readonly ids: number;
  readonly heartbeats: number;
  readonly statements: number;
  readonly processorMs: number;
}

async function measure(pool: pg.Pool, serverPid: number): Promise<Usage> {
  await resetStatementStats(pool);
  const idsBefore = await nextId(pool);
  const msBefore = processorMsOf(serverPid);
  await pause(seconds * 1_000);
  const processorMs = processorMsOf(serverPid) - msBefore;
  const ids = (await nextId(pool)) - idsBefore;
  const { calls: heartbeats } = await readStatementStats(pool, "heartbeat_v1");
  const { calls: statements } = await readStatementStats(pool, "_v1");
  return { ids, heartbeats, statements, processorMs };
}

/** Asking takes none. */
async function nextId(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ id: string }>(
    "select pg_snapshot_xmax(pg_current_snapshot())::text as id",
  );
  return Number(rows[0]!.id);
}

async function countWorkers(pool: pg.Pool, schema: string, pid: number): Promise<number> {
  const { rowCount } = await pool.query(
    `select 1 from ${schema}.worker where pid = $1 and ended_at is null`,
    [pid],
  );
  return rowCount!;
}

/** Of the server, of its processes, and of those that have ended. Zero where the system does not tell. */
function processorMsOf(serverPid: number): number {
  const tickMs = 10;
  const stats = processes().map(statOf);
  const times = stats.map((stat) => {
    if (stat.pid === serverPid) return stat.own + stat.ofEnded;
    return stat.parent === serverPid ? stat.own : 0;
  });
  return times.reduce((sum, ticks) => sum + ticks, 0) * tickMs;
}

function processes(): readonly number[] {
  try {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch {
    return [];
  }
}

/** Times in ticks. */
function statOf(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Behind the name, which may hold anything.
    const fields = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    return { pid, parent: fields[1]!, own: fields[11]! + fields[12]!, ofEnded: fields[13]! + fields[14]! };
  } catch {
    return { pid, parent: 0, own: 0, ofEnded: 0 };
  }
}
