// Builds the published packages from nothing, so that no output of a deleted source is left in `dist`.

import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const packages = readdirSync(join(root, "packages")).map((name) => join(root, "packages", name));

for (const path of packages) rmSync(join(path, "dist"), { recursive: true, force: true });

const tsc = join(root, "node_modules/typescript/bin/tsc");
const projects = packages.map((path) => join(path, "tsconfig.build.json"));
const { status } = spawnSync(process.execPath, [tsc, "-b", ...projects], { cwd: root, stdio: "inherit" });
process.exitCode = status ?? 1;
