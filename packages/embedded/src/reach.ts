import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { runProgram } from "./program.ts";
import type { ServerUser } from "./server-user.ts";

/** Whether `user` can enter the folder. Asks the system by trying, since modes do not tell all. */
export async function canEnter(dir: string, user: ServerUser | undefined): Promise<boolean> {
  if (user === undefined) return true;
  const { exitCode } = await runProgram("/bin/sh", ["-c", 'cd -- "$0"', dir], { user });
  return exitCode === 0;
}

/** The topmost folder on the way to `dir` that `user` cannot enter. */
export async function findClosedFolder(dir: string, user: ServerUser): Promise<string> {
  let closed = dir;
  for (let folder = dir; folder !== dirname(folder); folder = dirname(folder)) {
    const { uid, gid, mode } = await stat(folder);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) closed = folder;
  }
  return closed;
}

/** Folders for temporary files that `user` can enter, the usual one first. */
export async function temporaryFolders(user: ServerUser | undefined): Promise<readonly string[]> {
  const usual = tmpdir();
  if (process.platform === "win32") return [usual];
  const open: string[] = [];
  for (const folder of new Set([usual, "/tmp", "/var/tmp"])) {
    if (await canEnter(folder, user)) open.push(folder);
  }
  return open;
}
