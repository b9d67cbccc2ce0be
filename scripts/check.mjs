// Runs every static check and prints a line for each.
// Arguments choose among them: `npm run check -- lint types`.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const packages = readdirSync(join(root, "packages")).map((name) => `packages/${name}`);

/**
 * Each lane runs its checks one after the other, each check its commands. Two lanes, for CI has two cores.
 * @type {readonly Record<string, readonly string[]>[]}
 */
const lanes = [
  {
    types: ["tsc -b"],
    // Looks at what is to be published, which `tsc -b` has just written.
    exports: packages.flatMap(exportCommands),
  },
  {
    lint: ["oxlint"],
    format: ["oxfmt --check"],
    lockfile: ["node scripts/check-lockfile.mjs"],
    generated: ["node scripts/generate.mjs --check"],
    unused: ["knip"],
  },
];

/**
 * To attw a `require` of an ES module is an error. Every Node we support can do it, which is tried instead.
 * @param {string} path
 */
function exportCommands(path) {
  const { name, exports } = JSON.parse(readFileSync(join(root, path, "package.json"), "utf8"));
  const entries = Object.keys(exports).map((entry) => entry.replace(".", name));
  return [
    `publint run ${path} --strict`,
    `attw --pack ${path} --profile node16 --no-color --ignore-rules cjs-resolves-to-esm`,
    ...entries.map((entry) => `node -e "require('${entry}')"`),
  ];
}

/**
 * @param {string} command
 * @returns {Promise<{ status: number, output: string }>}
 */
function run(command) {
  const PATH = [join(root, "node_modules/.bin"), process.env["PATH"]].join(delimiter);
  const colour = process.stdout.isTTY ? { FORCE_COLOR: "1" } : { NO_COLOR: "1" };
  const env = { ...process.env, ...colour, PATH };
  const child = spawn(command, { cwd: root, env, shell: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  return new Promise((resolve) => {
    child.on("error", (error) => resolve({ status: 1, output: error.message }));
    child.on("close", (status) => resolve({ status: status ?? 1, output }));
  });
}

/**
 * @param {string} name
 * @param {readonly string[]} commands
 */
async function perform(name, commands) {
  const startedAt = performance.now();
  const line = (/** @type {string} */ verdict) => {
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    return `${verdict.padEnd(6)}  ${name.padEnd(9)} ${seconds.padStart(5)} s`;
  };
  for (const command of commands) {
    const { status, output } = await run(command);
    if (status === 0) continue;
    console.log(`${line("FAILED")}\n\n$ ${command}\n${output.trimEnd()}\n`);
    process.exitCode = 1;
    return;
  }
  console.log(line("ok"));
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !lanes.some((lane) => name in lane));
if (unknown.length > 0) throw new Error(`There is no check named ${unknown.join(" or ")}.`);

await Promise.all(
  lanes.map(async (lane) => {
    for (const [name, commands] of Object.entries(lane)) {
      if (wanted.length === 0 || wanted.includes(name)) await perform(name, commands);
    }
  }),
);
