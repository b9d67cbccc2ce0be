import { execFileSync } from "node:child_process";
import { chown } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeFolder } from "./folders.ts";
import { Owner } from "./owner.ts";
import { expectEnd, expectGone, isRoot, serverPid, supervisorPid, userOf } from "./processes.ts";
import { query } from "./query.ts";
import { start } from "./start.ts";

const nobody = { uid: 65_534, gid: 65_534 };
const hasSetpriv = isRoot && succeeds("setpriv", ["--version"]);

test("the server never runs as root, and otherwise as its owner", async () => {
  const postgres = await start();
  const user = userOf(serverPid(postgres.dir));
  expect(user).not.toBe(0);
  if (!isRoot) expect(user).toBe(process.getuid?.());
});

test.runIf(isRoot)("an ordinary user's server runs as that user, and dies with its owner", async () => {
  await using owner = new Owner({}, nobody);
  const { dir, url } = await owner.started();
  expect(await query(url, "select 1")).toBe(1);
  const pids = [serverPid(dir), supervisorPid(dir)];
  expect(pids.map(userOf)).toEqual([nobody.uid, nobody.uid]);
  await owner.kill();
  await expectEnd(...pids);
  await expectGone(dir);
});

test.runIf(isRoot)("root can join an ordinary user's server, and start it as that user later", async () => {
  const dir = await makeFolder();
  await chown(dir, nobody.uid, nobody.gid);
  await using owner = new Owner({ dir }, nobody);
  const { url } = await owner.started();
  const joined = await start({ dir });
  expect(joined.url).toBe(url);
  await owner.stop();
  await joined.stop();

  const postgres = await start({ dir });
  expect(userOf(serverPid(dir))).toBe(nobody.uid);
  await postgres.stop();
});

test.runIf(hasSetpriv)("root that may not become another user is told so", async () => {
  const through = ["setpriv", "--bounding-set", "-setuid,-setgid"];
  await using owner = new Owner({}, { through });
  expect(await owner.failed()).toMatchObject({ code: "USER_UNAVAILABLE" });
});

function succeeds(file: string, args: readonly string[]): boolean {
  try {
    execFileSync(file, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
