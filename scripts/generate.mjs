// Runs every generator. With `--check` it writes nothing and fails when a generated file is stale.

import { spawnSync } from "node:child_process";
import { join } from "node:path";

const generators = ["inline-migrations.mjs", "inline-examples.mjs"];

for (const generator of generators) {
  const args = [join(import.meta.dirname, generator), ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
