import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPostgres, type EmbeddedPostgres } from "../src/index.ts";
import { binaries } from "./binaries.ts";
import { eventually } from "./eventually.ts";
import { makeFolder } from "./folders.ts";
import { query } from "./query.ts";
import { start } from "./start.ts";

let shared: EmbeddedPostgres;

beforeAll(async () => {
  shared = await startPostgres(binaries === undefined ? {} : { binaries });
});

afterAll(() => shared.stop());

/** What takes this long on an idle machine may take longer on a busy one, where all takes longer. */
async function scaleLimit(idleMs: number): Promise<number> {
  const startedAt = performance.now();
  for (let run = 0; run < 3; run += 1) await once(spawn(process.execPath, ["-e", "0"]), "exit");
  const emptyMs = (performance.now() - startedAt) / 3;
  return Math.max(idleMs, (idleMs * emptyMs) / 50);
}

test("a server without a folder starts within seconds and leaves nothing behind", async () => {
  const limitMs = await scaleLimit(2_500);
  const startedAt = performance.now();
  const postgres = await start();
  expect(performance.now() - startedAt).toBeLessThan(limitMs);
  expect(await query(postgres.url, "select 1")).toBe(1);
  await Promise.all([postgres.stop(), postgres.stop()]);
  expect(existsSync(postgres.dir)).toBe(false);
  await postgres.stop();
  await expect(postgres.createDatabase("late")).rejects.toMatchObject({ code: "STOPPED" });
});

test("a folder that has been used before starts again at once, on its port and with its data", async () => {
  const dir = await makeFolder();
  const first = await start({ dir, durable: true });
  await query(first.url, "create table kept as select 42 as answer");
  await first[Symbol.asyncDispose]();

  const limitMs = await scaleLimit(500);
  const startedAt = performance.now();
  const second = await start({ dir });
  expect(performance.now() - startedAt).toBeLessThan(limitMs);
  expect(second.url).toBe(first.url);
  expect(await query(second.url, "select answer from kept")).toBe(42);
});

test("a database can be made from a template and removed while it is in use", async () => {
  const name = 'a "strange" näme';
  const template = await shared.createDatabase("template");
  await query(template, "create table kept as select 42 as answer");
  const copy = await shared.createDatabase(name, "template");
  expect(await query(copy, "select answer from kept")).toBe(42);
  await expect(shared.createDatabase("template")).rejects.toMatchObject({ code: "QUERY_FAILED" });

  const sleeper = query(copy, "select pg_sleep(60)").catch((error: unknown) => error);
  const connections = `select count(*)::int from pg_stat_activity where datname = '${name}'`;
  await eventually(() => query(shared.url, connections)).toBe(1);
  await shared.dropDatabase(name);
  expect(await sleeper).toMatchObject({ code: "57P01" });
  await shared.dropDatabase("never there");
});

test("only this machine can connect, with a password that only this user can read", async () => {
  expect(new URL(shared.url).password.length).toBeGreaterThan(30);
  expect(statSync(join(shared.dir, "data", "pawl.password")).mode & 0o777).toBe(0o600);
  const wrong = new URL(shared.url);
  wrong.password = "guessed";
  await expect(query(wrong.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  expect(await query(shared.url, "show unix_socket_directories")).toBe("");
  expect(await query(shared.url, "select string_agg(distinct auth_method, ' ') from pg_hba_file_rules")).toBe(
    "scram-sha-256",
  );
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.internal === false && address.family === "IPv4");
  if (outside === undefined) return;
  const socket = connect(shared.port, outside.address);
  await expect(once(socket, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("text is UTF-8 and sorted by code point, and time is UTC, wherever the server runs", async () => {
  const sorted = "select string_agg(t, '' order by t) from (values ('b'), ('B'), ('ä'), ('a')) v(t)";
  expect(await query(shared.url, "show server_encoding")).toBe("UTF8");
  expect(await query(shared.url, sorted)).toBe("Babä");
  expect(await query(shared.url, "show timezone")).toBe("UTC");
});

test("a server is durable unless told otherwise", async () => {
  expect(await query(shared.url, "show fsync")).toBe("on");
  expect(await query(shared.url, "show synchronous_commit")).toBe("on");
  const fast = await start({ durable: false });
  expect(await query(fast.url, "show fsync")).toBe("off");
  expect(await query(fast.url, "show synchronous_commit")).toBe("off");
  expect(await query(fast.url, "show full_page_writes")).toBe("off");
});

test("settings reach the server, and its log whoever asks for it", async () => {
  const lines: string[] = [];
  const postgres = await start({
    settings: { max_connections: "7", log_statement: "all" },
    log: (line) => lines.push(line),
  });
  expect(await query(postgres.url, "show max_connections")).toBe("7");
  await query(postgres.url, "select 'a line to look for'");
  await eventually(() => lines.join("\n")).toContain("a line to look for");
});
