import { lstat, readFile, symlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { hasSystemCode } from "./system-code.ts";

interface LibraryLink {
  /** The file that exists. */
  readonly source: string;
  /** The link to it. */
  readonly target: string;
}

/**
 * Makes the links between libraries that npm cannot pack, and that the binary package's install
 * script would have made. Any number of processes may do this at once. False means that the
 * folder cannot be written.
 */
export async function makeLibraryLinks(binaries: string): Promise<boolean> {
  for (const link of await readLinks(binaries)) {
    if (await exists(link.target)) continue;
    try {
      await symlink(relative(dirname(link.target), link.source), link.target);
    } catch (error) {
      if (hasSystemCode(error, "EACCES", "EPERM", "EROFS")) return false;
      if (!hasSystemCode(error, "EEXIST")) throw error;
    }
  }
  return true;
}

async function readLinks(binaries: string): Promise<readonly LibraryLink[]> {
  const text = await readFile(join(binaries, "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links: unknown = JSON.parse(text);
  return Array.isArray(links) ? links.filter(isLink).map((link) => locate(binaries, link)) : [];
}

/** The list names files from the package's root, whose folder `native` is what we are given. */
function locate(binaries: string, link: LibraryLink): LibraryLink {
  const place = (path: string): string => join(binaries, relative("native", dirname(path)), basename(path));
  return { source: place(link.source), target: place(link.target) };
}

function isLink(value: unknown): value is LibraryLink {
  if (typeof value !== "object" || value === null) return false;
  const { source, target } = value as Partial<Record<string, unknown>>;
  return isInside(source) && isInside(target);
}

function isInside(path: unknown): boolean {
  return typeof path === "string" && path.startsWith("native/") && !path.split("/").includes("..");
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}
