// Fails when package.json or package-lock.json would install something else, or nothing, on another machine.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const text = readFileSync(join(root, "package-lock.json"), "utf8");
/** @type {Record<string, Record<string, any>>} */
const packages = JSON.parse(text).packages;
const names = new Set(Object.keys(packages).map((path) => path.split("node_modules/").at(-1)));
/** @type {string[]} */
const faults = [];

for (const [path, entry] of Object.entries(packages)) {
  // npm leaves out the platforms whose binaries it could not find; `npm ci` then fails.
  for (const name of Object.keys(entry["optionalDependencies"] ?? {})) {
    if (!names.has(name)) faults.push(`package-lock.json lacks ${name}, which ${path} may need.`);
  }
  if (String(entry["resolved"]).startsWith("http")) {
    faults.push(`package-lock.json names a registry for ${path}: use omit-lockfile-registry-resolved.`);
  }
  if (path.includes("node_modules/")) continue;
  for (const kind of ["dependencies", "devDependencies", "optionalDependencies"]) {
    for (const [name, version] of Object.entries(entry[kind] ?? {})) {
      if (!/^\d/.test(version)) faults.push(`${path}/package.json must name ${name}'s version exactly.`);
    }
  }
}

for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
