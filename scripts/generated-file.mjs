import { readFile, writeFile } from "node:fs/promises";
import { relative } from "node:path";

/**
 * Writes a generated file. With `--check` on the command line it compares instead, and fails when stale.
 * @param {string} target
 * @param {string} content
 */
export async function emit(target, content) {
  const current = await readFile(target, "utf8").catch(() => null);
  if (current === content) return;
  const name = relative(process.cwd(), target);
  if (process.argv.includes("--check")) {
    console.error(`${name} is stale: run npm run generate.`);
    process.exitCode = 1;
    return;
  }
  await writeFile(target, content);
  console.log(`wrote ${name}`);
}
