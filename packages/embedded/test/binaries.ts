import { constants } from "node:fs";
import { copyFile, link, mkdir, readdir, symlink, readlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { findPlatformBinaries } from "../src/platform-package.ts";

/** The Postgres to run these tests on. Default: the bundled one. */
export const binaries: string | undefined = process.env["PAWL_PG_BINARIES"];

/** A copy of the binaries: of names where that can be, since the bytes are many. */
export async function copyBinaries(target: string, links: "with links" | "without links"): Promise<void> {
  const source = binaries ?? findPlatformBinaries();
  await mkdir(target, { recursive: true });
  for (const entry of await readdir(source, { recursive: true, withFileTypes: true })) {
    const from = join(entry.parentPath, entry.name);
    const to = join(target, relative(source, from));
    if (entry.isDirectory()) await mkdir(to, { recursive: true });
    else if (!entry.isSymbolicLink())
      await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
    else if (links === "with links") await symlink(await readlink(from), to);
  }
}
