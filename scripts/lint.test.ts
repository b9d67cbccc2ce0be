import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const repository = join(import.meta.dirname, "..");

/** Each fault has a file of its own, linted with the repository's own configuration. */
const faults: readonly { name: string; path: string; code: string; report: string }[] = [
  {
    name: "an upward import",
    path: "store/upward.ts",
    code: `import { id } from "../worker/loop.ts";\nexport const copy = id;`,
    report: "store/ may not import worker/",
  },
  {
    name: "an upward import of a type",
    path: "core/upward-type.ts",
    code: `import type { Row } from "../store/row.ts";\nexport type Copy = Row;`,
    report: "core/ may not import store/",
  },
  {
    name: "an upward import written as a type expression",
    path: "core/upward-expression.ts",
    code: `export type Copy = import("../store/row.ts").Row;`,
    report: "core/ may not import store/",
  },
  {
    name: "an upward import from a folder further down",
    path: "postgres/transitions/upward.ts",
    code: `export { id } from "../../worker/loop.ts";`,
    report: "postgres/ may not import worker/",
  },
  {
    name: "a dynamic upward import",
    path: "runtime/dynamic.ts",
    code: `export const load = () => import("../worker/loop.ts");`,
    report: "runtime/ may not import worker/",
  },
  {
    name: "a value imported where only types may be",
    path: "machine/value.ts",
    code: `import { start } from "../runtime/start.ts";\nexport const again = start;`,
    report: "machine/ may not import runtime/",
  },
  {
    name: "an import of the barrel",
    path: "client/barrel.ts",
    code: `import { everything } from "../index.ts";\nexport const copy = everything;`,
    report: "the barrel is for users",
  },
  {
    name: "the driver outside postgres/",
    path: "client/driver.ts",
    code: `import pg from "pg";\nexport const client = () => new pg.Client();`,
    report: "client/ may not import the package pg",
  },
  {
    name: "a node module in core/",
    path: "core/node-import.ts",
    code: `import { randomUUID } from "node:crypto";\nexport const id = () => randomUUID();`,
    report: "core/ may not import the package node:crypto",
  },
  {
    name: "a folder that nobody has placed",
    path: "elsewhere/lost.ts",
    code: `export const lost = true;`,
    report: "elsewhere/ has no import boundary",
  },
  {
    name: "a cycle",
    path: "client/cycle-a.ts",
    code: `import { b } from "./cycle-b.ts";\nexport const a = () => b();`,
    report: "import(no-cycle)",
  },
  {
    name: "a cycle of types alone",
    path: "client/type-cycle-a.ts",
    code: `import type { B } from "./type-cycle-b.ts";\nexport interface A { readonly b: B | null }`,
    report: "import(no-cycle)",
  },
  {
    name: "a type imported in the middle of an expression, which would hide a cycle",
    path: "client/import-expression.ts",
    code: `export type Copy = import("../store/row.ts").Row;`,
    report: "consistent-type-imports",
  },
  {
    name: "a floating promise",
    path: "worker/floating.ts",
    code: `async function beat(): Promise<void> {}\nexport function start(): void {\n  beat();\n}`,
    report: "no-floating-promises",
  },
  {
    name: "a promise where a boolean is meant",
    path: "worker/misused.ts",
    code: `export function isDone(done: () => Promise<boolean>): string {\n  if (done()) return "yes";\n  return "no";\n}`,
    report: "no-misused-promises",
  },
  {
    name: "a floating promise in a test",
    path: "worker/floating.test.ts",
    code: `async function beat(): Promise<void> {}\nexport function start(): void {\n  beat();\n}`,
    report: "no-floating-promises",
  },
  {
    name: "a switch that forgets a state",
    path: "core/switch.ts",
    code: `export function name(state: "a" | "b"): string {\n  switch (state) {\n    case "a":\n      return "A";\n    default:\n      return "?";\n  }\n}`,
    report: "switch-exhaustiveness-check",
  },
  {
    name: "any",
    path: "core/any.ts",
    code: `export const value: any = 1;`,
    report: "no-explicit-any",
  },
  {
    name: "Date.now() in core/",
    path: "core/date-now.ts",
    code: `export const now = () => Date.now();`,
    report: "no-restricted-properties",
  },
  {
    name: "new Date() in core/",
    path: "core/new-date.ts",
    code: `export const now = () => new Date();`,
    report: "no-ambient-date",
  },
  {
    name: "Math.random() in runtime/",
    path: "runtime/random.ts",
    code: `export const chance = () => Math.random();`,
    report: "no-restricted-properties",
  },
  {
    name: "setTimeout in memory/",
    path: "memory/timer.ts",
    code: `export const later = (f: () => void) => setTimeout(f, 1);`,
    report: "no-restricted-globals",
  },
  {
    name: "crypto.randomUUID() in store/",
    path: "store/crypto.ts",
    code: `export const id = () => crypto.randomUUID();`,
    report: "no-restricted-globals",
  },
  {
    name: "process in runtime/",
    path: "runtime/process.ts",
    code: `export const pid = () => process.pid;`,
    report: "no-restricted-globals",
  },
];

/** Files without a fault: the other ends of the faults, and what the rules must let through. */
const soundFiles: Readonly<Record<string, string>> = {
  "index.ts": `export { everything } from "./client/everything.ts";`,
  "core/date.ts": `export const at = (ms: number) => new Date(ms);`,
  "store/row.ts": `import { at } from "../core/date.ts";\nexport interface Row { readonly at: Date }\nexport const first = (): Row => ({ at: at(0) });`,
  "runtime/start.ts": `import type { Row } from "../store/row.ts";\nexport const start = (row: Row) => row.at;`,
  "machine/types.ts": `import type { start } from "../runtime/start.ts";\nexport type Start = typeof start;`,
  "worker/loop.ts": `import { start } from "../runtime/start.ts";\nexport const id = start;`,
  "client/everything.ts": `export const everything = 1;`,
  "runtime/workflow.ts": `export const workflow = 1;`,
  "machine/named-file.ts": `import { workflow } from "../runtime/workflow.ts";\nexport const again = workflow;`,
  "client/cycle-b.ts": `import { a } from "./cycle-a.ts";\nexport const b = (): unknown => a();`,
  "client/type-cycle-b.ts": `import type { A } from "./type-cycle-a.ts";\nexport interface B { readonly a: A | null }`,
};

interface Diagnostic {
  readonly filename: string;
  readonly code: string;
  readonly message: string;
}

describe("lint", () => {
  let folder: string;
  let reports: Map<string, string[]>;

  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "pawl-lint-")));
    for (const file of [".oxlintrc.jsonc", "scripts/lint/plugin.mjs", "tsconfig.base.json", "package.json"]) {
      await cp(join(repository, file), join(folder, file), { recursive: true });
    }
    for (const file of ["tsconfig.json", "package.json"]) {
      await cp(join(repository, "packages/pawl", file), join(folder, "packages/pawl", file));
    }
    await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
    await plant(folder, soundFiles);
    await plant(folder, Object.fromEntries(faults.map(({ path, code }) => [path, code])));
    reports = await lint(folder);
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(faults)("reports $name", ({ path, report }) => {
    expect(reports.get(path) ?? []).toContainEqual(expect.stringContaining(report));
  });

  test("reports nothing else", () => {
    const faulty = new Set(faults.map(({ path }) => path));
    const cycles = ["client/cycle-b.ts", "client/type-cycle-b.ts"];
    expect([...reports.keys()].filter((path) => !faulty.has(path) && !cycles.includes(path))).toEqual([]);
  });
});

async function plant(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, code] of Object.entries(files)) {
    const target = join(folder, "packages/pawl/src", path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, `${code}\n`);
  }
}

/** What is reported on each file, by its path inside packages/pawl/src. */
async function lint(folder: string): Promise<Map<string, string[]>> {
  const { diagnostics } = JSON.parse(await runOxlint(folder)) as { diagnostics: Diagnostic[] };
  const reports = new Map<string, string[]>();
  for (const { filename, code, message } of diagnostics) {
    const path = filename.replace(/^packages\/pawl\/src\//, "");
    reports.set(path, [...(reports.get(path) ?? []), `${code}: ${message}`]);
  }
  return reports;
}

/** Faults make it exit with 1, so only what it prints counts. */
function runOxlint(cwd: string): Promise<string> {
  const oxlint = join(repository, "node_modules/oxlint/bin/oxlint");
  const args = [oxlint, "--format=json", "packages"];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd, maxBuffer: 2 ** 24 }, (_error, stdout) => resolve(stdout));
  });
}
