import { constants } from "node:fs";
import { access, chmod, mkdir, mkdtemp, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { folderAt } from "./folder.ts";
import { canEnter, findClosedFolder, temporaryFolders } from "./reach.ts";
import type { ServerUser } from "./server-user.ts";

/** Makes a new folder in a place that the server's user can enter. */
export async function makeTemporaryFolder(user: ServerUser | undefined): Promise<string> {
  const [parent] = await temporaryFolders(user);
  if (parent === undefined) {
    throw unreachable(
      "the temporary folder",
      `${user?.name ?? "this user"} can enter none; set TMPDIR to one it can`,
    );
  }
  const dir = await realpath(await mkdtemp(join(parent, "pawl-postgres-")));
  if (user !== undefined) await chmod(dir, 0o711);
  return dir;
}

/** Makes the folder if need be, and checks that the server could work in it. Returns its real path. */
export async function prepareFolder(given: string, user: ServerUser | undefined): Promise<string> {
  const dir = await makeFolder(given, user);
  if (user !== undefined && !(await canEnter(dir, user))) {
    const closed = await findClosedFolder(dir, user);
    throw unreachable(
      dir,
      `root runs Postgres as ${user.name}, who cannot enter ${closed}; choose another folder, or run chmod o+x ${closed}`,
      { user: user.name, closed },
    );
  }
  const cluster = await stat(folderAt(dir).cluster).catch(() => undefined);
  const uid = process.getuid?.();
  if (cluster !== undefined && user === undefined && uid !== undefined && cluster.uid !== uid) {
    throw unreachable(
      dir,
      `its cluster belongs to user ${cluster.uid} and you are user ${uid}; start as that user or as root, or choose another folder`,
      { owner: cluster.uid, uid },
    );
  }
  return dir;
}

async function makeFolder(dir: string, user: ServerUser | undefined): Promise<string> {
  try {
    const made = await mkdir(dir, { recursive: true, mode: user === undefined ? 0o700 : 0o711 });
    if (made !== undefined && user !== undefined) await chmod(dir, 0o711);
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    return await realpath(dir);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw unreachable(dir, `it cannot be made or written (${reason}); choose another folder`, {}, cause);
  }
}

function unreachable(
  dir: string,
  reason: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "DATA_DIR_UNREACHABLE",
    `Postgres cannot keep its data in ${dir}: ${reason}.`,
    { dir, ...details },
    cause,
  );
}
