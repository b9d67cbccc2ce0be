import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { tryPort } from "../src/supervisor/port.ts";
import { makeFolder } from "./folders.ts";
import { Owner } from "./owner.ts";
import { expectEnd, serverPid, supervisorPid } from "./processes.ts";
import { query } from "./query.ts";
import { start } from "./start.ts";

async function freePort(): Promise<number> {
  const port = await tryPort(0);
  if (port === undefined) throw new Error("There is no free port.");
  return port;
}

/** Kills a server's owner and supervisor, without leaving either the time to notice that the other is dead. */
async function killWithSupervisor(owner: Owner, dir: string): Promise<void> {
  const supervisor = supervisorPid(dir);
  process.kill(supervisor, "SIGSTOP");
  await owner.kill();
  process.kill(supervisor, "SIGKILL");
  await expectEnd(supervisor);
}

test("a server that was killed with its owner and supervisor is recovered", async () => {
  const dir = await makeFolder();
  await using owner = new Owner({ dir });
  const { url } = await owner.started();
  await query(url, "create table kept as select 42 as answer");
  const pid = serverPid(dir);
  await killWithSupervisor(owner, dir);
  process.kill(pid, "SIGKILL");
  await expectEnd(pid);
  expect(existsSync(join(dir, "data", "postmaster.pid"))).toBe(true);

  const postgres = await start({ dir });
  expect(await query(postgres.url, "select answer from kept")).toBe(42);
});

test("a server that outlived its owner and supervisor is taken on, and ends with the new owner", async () => {
  const dir = await makeFolder();
  await using owner = new Owner({ dir });
  const { url } = await owner.started();
  const pid = serverPid(dir);
  await killWithSupervisor(owner, dir);

  const postgres = await start({ dir });
  expect(postgres.url).toBe(url);
  expect(serverPid(dir)).toBe(pid);
  expect(await query(url, "select 1")).toBe(1);
  await postgres.stop();
  await expectEnd(pid);
});

test("a dead server's number that another process has now does not keep the next one from starting", async () => {
  const dir = await makeFolder();
  const first = await start({ dir });
  const pidFile = join(dir, "data", "postmaster.pid");
  const text = await readFile(pidFile, "utf8");
  const { uid, gid } = await stat(pidFile);
  await first.stop();

  const stranger = spawn("sleep", ["60"], { uid, gid, cwd: "/" });
  onTestFinished(() => void stranger.kill());
  await once(stranger, "spawn");
  await writeFile(pidFile, text.replace(/^\d+/, String(stranger.pid)));
  const second = await start({ dir });
  expect(await query(second.url, "select 1")).toBe(1);
  expect(serverPid(dir)).not.toBe(stranger.pid);
  expect(stranger.exitCode ?? stranger.signalCode).toBe(null);
});

test("what a killed initdb has left is removed", async () => {
  const dir = await makeFolder();
  await mkdir(join(dir, "data.draft-0000"));
  await writeFile(join(dir, "data.draft-0000", "PG_VERSION"), "18\n");
  await start({ dir });
  expect((await readdir(dir)).filter((name) => name.startsWith("data"))).toEqual(["data"]);
});

test("a busy port is replaced by a free one, or refused if it must be that one", async () => {
  const dir = await makeFolder();
  const other = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void other.close());
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  const postgres = await start({ dir, port });
  expect(postgres.port).not.toBe(port);
  expect(await query(postgres.url, "select 1")).toBe(1);

  await expect(start({ dir, port, strictPort: true })).rejects.toMatchObject({ code: "ALREADY_RUNNING" });
  await postgres.stop();
  await expect(start({ dir, port, strictPort: true })).rejects.toMatchObject({
    code: "PORT_BUSY",
    details: { port },
  });
  other.close();
  await once(other, "close");
  expect((await start({ dir, port, strictPort: true })).port).toBe(port);
});

test("a port that is taken only while the server starts does not keep it from starting", async () => {
  const port = await freePort();
  const over = new AbortController();
  const flicker = (async () => {
    while (!over.signal.aborted) {
      const other = createServer().on("error", () => undefined);
      other.listen({ port, host: "127.0.0.1", exclusive: true });
      await delay(3);
      if (other.listening) await new Promise((resolve) => other.close(resolve));
    }
  })();
  const postgres = await start({ port });
  over.abort();
  await flicker;
  expect(await query(postgres.url, "select 1")).toBe(1);
});

test("two servers that want the same port at once both start", async () => {
  const port = await freePort();
  const [first, second] = await Promise.all([start({ port }), start({ port })]);
  expect(await query(first.url, "select 1")).toBe(1);
  expect(await query(second.url, "select 1")).toBe(1);
});

test("the folder's path may be long and hold any character", async () => {
  const dir = join(await makeFolder(), `it's "my" $HOME %s ünï ${"long ".repeat(25)}`);
  const postgres = await start({ dir });
  expect(await query(postgres.url, "select 1")).toBe(1);
  const joined = await start({ dir });
  expect(joined.url).toBe(postgres.url);
});
