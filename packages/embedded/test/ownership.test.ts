import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { eventually } from "./eventually.ts";
import { makeFolder } from "./folders.ts";
import { Owner } from "./owner.ts";
import { expectEnd, expectGone, isRunning, serverPid, supervisorPid } from "./processes.ts";
import { query } from "./query.ts";
import { start } from "./start.ts";

test("an owner that is killed leaves no server, no supervisor and no temporary folder", async () => {
  await using owner = new Owner({});
  const { dir } = await owner.started();
  const pids = [serverPid(dir), supervisorPid(dir)];
  await owner.kill();
  await expectEnd(...pids);
  await expectGone(dir);
});

test("an owner that exits without stopping takes its server with it", async () => {
  await using owner = new Owner({});
  const { dir } = await owner.started();
  const pids = [serverPid(dir), supervisorPid(dir)];
  await owner.exit();
  await expectEnd(...pids);
  await expectGone(dir);
});

test("an owner that is killed while the cluster is made leaves no cluster", async () => {
  const dir = await makeFolder();
  await using owner = new Owner({ dir });
  await eventually(() => readdirSync(dir).some((name) => name.startsWith("data.draft-"))).toBe(true);
  await owner.kill();
  await eventually(() => readdirSync(dir).filter((name) => name.startsWith("data"))).toEqual([]);
  const postgres = await start({ dir });
  expect(await query(postgres.url, "select 1")).toBe(1);
});

test("Ctrl-C reaches the owner but not its server, which ends when the owner does", async () => {
  await using owner = new Owner({});
  const { dir, url } = await owner.started();
  const pid = serverPid(dir);
  owner.interruptGroup();
  expect(await owner.hear()).toEqual({ kind: "interrupted" });
  expect(await query(url, "select 1")).toBe(1);
  await owner.exit();
  await expectEnd(pid);
});

test("a second process joins the running server, which lives until the last owner has gone", async () => {
  const dir = await makeFolder();
  await using first = new Owner({ dir });
  const { url } = await first.started();
  await using second = new Owner({ dir });
  expect((await second.started()).url).toBe(url);
  const pids = [serverPid(dir), supervisorPid(dir)];

  await first.kill();
  expect(await query(url, "select 1")).toBe(1);
  const third = await start({ dir });
  expect(third.url).toBe(url);
  await second.stop();
  expect(await query(url, "select 1")).toBe(1);
  await third.stop();
  expect(pids.filter(isRunning)).not.toContain(pids[0]);
  await expectEnd(...pids);
});

test("many processes that start in one new folder at once share one server", async () => {
  const dir = await makeFolder();
  const owners = Array.from({ length: 5 }, () => new Owner({ dir }));
  try {
    const started = await Promise.all(owners.map((owner) => owner.started()));
    expect(new Set(started.map(({ url }) => url)).size).toBe(1);
    const pids = [serverPid(dir), supervisorPid(dir)];
    expect(await query(started[0]!.url, "select 1")).toBe(1);
    expect(readdirSync(dir).filter((name) => name.startsWith("supervisor."))).toHaveLength(2);
    await Promise.all(owners.map((owner) => owner.kill()));
    await expectEnd(...pids);
  } finally {
    for (const owner of owners) await owner[Symbol.asyncDispose]();
  }
});

test("a process that comes while the last owner leaves gets a server all the same", async () => {
  const dir = await makeFolder();
  for (let round = 0; round < 3; round += 1) {
    const leaving = await start({ dir });
    const [coming] = await Promise.all([start({ dir }), leaving.stop()]);
    expect(await query(coming.url, "select 1")).toBe(1);
    await coming.stop();
  }
});

test("a supervisor that is killed is replaced, and the server still ends with its owner", async () => {
  const dir = await makeFolder();
  await using owner = new Owner({ dir });
  const { url } = await owner.started();
  const pid = serverPid(dir);
  const killed = supervisorPid(dir);
  process.kill(killed, "SIGKILL");
  await expectEnd(killed);
  await eventually(() => readdirSync(dir).filter((name) => /^supervisor\.\d/.test(name))).toEqual([
    "supervisor.2",
  ]);
  await using second = new Owner({ dir });
  expect((await second.started()).url).toBe(url);
  expect(serverPid(dir)).toBe(pid);
  await second.stop();
  await owner.kill();
  await expectEnd(pid);
});

test("a server that is killed is started again, on the same port and with its data", async () => {
  const dir = await makeFolder();
  const postgres = await start({ dir, durable: true });
  await query(postgres.url, "create table kept as select 42 as answer");
  const pid = serverPid(dir);
  process.kill(pid, "SIGKILL");
  await expectEnd(pid);
  await eventually(() => query(postgres.url, "select answer from kept").catch(() => undefined)).toBe(42);
  expect(serverPid(dir)).not.toBe(pid);
});

test("an aborted start leaves nothing behind", async () => {
  const dir = await makeFolder();
  const controller = new AbortController();
  const starting = start({ dir, signal: controller.signal });
  await eventually(() => readdirSync(dir).some((name) => name.startsWith("data.draft-"))).toBe(true);
  controller.abort(new Error("changed my mind"));
  await expect(starting).rejects.toThrow("changed my mind");
  expect(readdirSync(dir).filter((name) => name.startsWith("data"))).toEqual([]);
  await expect(start({ dir, signal: controller.signal })).rejects.toThrow("changed my mind");
});

test("a server whose folder is removed under it still ends with its owner", async () => {
  const dir = await makeFolder();
  await using owner = new Owner({ dir });
  await owner.started();
  const pids = [serverPid(dir), supervisorPid(dir)];
  await rm(dir, { recursive: true });
  await owner.kill();
  await expectEnd(...pids);
});
