import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, cp, lstat, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { makeLibraryLinks } from "./library-links.ts";
import { hasSystemCode } from "./system-code.ts";

/** Not needed to run a server: for those who compile against it. */
const forCompilers = /\.a$|(^|[\\/])(include|pgxs|pkgconfig)([\\/]|$)/;
const publishAttempts = 5;

/**
 * Copies the binaries to a folder in `parent` that everyone can read, once, and returns it. The copy
 * is complete before it has its name, so processes that do this at once do not disturb each other.
 */
export async function copyBinaries(source: string, parent: string): Promise<string> {
  const target = join(parent, `pawl-postgres-${await fingerprint(source)}`);
  if ((await isComplete(target, source)) && (await makeLibraryLinks(target))) return target;
  const draft = `${target}.${randomBytes(6).toString("hex")}`;
  await mkdir(draft, { mode: 0o755 });
  try {
    await cp(source, draft, {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
      filter: (path) => !forCompilers.test(relative(source, path)),
    });
    await openToAll(draft);
    await makeLibraryLinks(draft);
    await publish(draft, target, source);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  return target;
}

async function publish(draft: string, target: string, source: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await rename(draft, target);
    } catch (error) {
      const isTaken = hasSystemCode(error, "ENOTEMPTY", "EEXIST", "EPERM");
      if (!isTaken || attempt === publishAttempts) throw error;
    }
    if (await isComplete(target, source)) return;
    // A cleaner of temporary files has been here: put what is left aside.
    const remains = `${draft}.old`;
    await rename(target, remains).catch(() => undefined);
    await rm(remains, { recursive: true, force: true });
  }
}

/** The originals may have been installed for our eyes only. */
async function openToAll(dir: string): Promise<void> {
  await chmod(dir, 0o755);
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(path, 0o755);
    else if (entry.isFile()) await chmod(path, ((await stat(path)).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}

/** The user is part of it: what someone else has left in a shared folder is never run. */
async function fingerprint(source: string): Promise<string> {
  const { size, mtimeMs } = await stat(join(source, "bin"));
  const identity = JSON.stringify([process.getuid?.(), source, size, mtimeMs]);
  return createHash("sha256").update(identity).digest("hex").slice(0, 16);
}

async function isComplete(target: string, source: string): Promise<boolean> {
  const found = await lstat(target).catch(() => undefined);
  if (found === undefined) return false;
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new EmbeddedPostgresError(
      "BINARIES_UNUSABLE",
      `${target} was made by someone else and might hold anything; remove it, or set TMPDIR to a folder of your own.`,
      { dir: target },
    );
  }
  const [wanted, held] = await Promise.all([listFiles(source), listFiles(target)]);
  return [...wanted].every((file) => held.has(file));
}

async function listFiles(dir: string): Promise<ReadonlySet<string>> {
  const files = await readdir(dir, { recursive: true });
  return new Set(files.filter((file) => !forCompilers.test(file)));
}
