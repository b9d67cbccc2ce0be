import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { createDatabase, dropDatabase } from "pawl-test-support";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Runs a program as a user would. It is an error if it fails, or says anything on stderr. */
async function runProgram(path: string, { env = {}, cwd = root }: RunOptions): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@pawl/source", "--import", tsx, join(root, path)],
    { env: { ...process.env, ...env }, cwd, timeout: 60_000 },
  );
  expect(stderr).toBe("");
  return stdout;
}

/** A program on a page, and the block after it, which is what it prints. */
const example = /<!-- example: (\S+) -->[^]*?<!-- \/example -->[^`]*```text\n([^]*?)```/g;

/** How many programs each page shows. */
const pages: Readonly<Record<string, number>> = {
  "shapes.md": 6,
  "starting.md": 1,
  "ending.md": 1,
  "operating.md": 1,
  "seeing.md": 1,
  "options.md": 1,
  "children.md": 1,
  "graphs.md": 1,
  "waiting.md": 1,
  "steps.md": 1,
  "effects.md": 1,
  "sagas.md": 1,
  "cancelling.md": 1,
  "changing-code.md": 5,
  "streams.md": 3,
  "front-ends.md": 2,
  "machines.md": 1,
};
const shown = await Promise.all(
  Object.keys(pages).map(async (page) => {
    const text = await readFile(join(root, "docs", page), "utf8");
    return [...text.matchAll(example)].map(([, path = "", output = ""]) => ({ page, path, output }));
  }),
);

describe("a page shows a program, and what it prints", () => {
  test.each(shown.flat())("$path, in $page", { timeout: 60_000 }, async ({ path, output }) => {
    const database = await createDatabase("empty");
    try {
      const printed = await runProgram(path, { env: { DATABASE_URL: database.url } });
      expect(printed.replaceAll(/ +$/gm, "")).toBe(output);
    } finally {
      await dropDatabase(database);
    }
  });

  test("no page shows a program without saying what it prints", async () => {
    expect(shown.map((programs) => programs.length)).toEqual(Object.values(pages));
  });
});

describe("the program on the front page", () => {
  test("goes on where it was killed, and repeats nothing", { timeout: 90_000 }, async () => {
    const cwd = await mkdtemp(join(tmpdir(), "pawl-front-page-"));
    // Root's Postgres runs as another user, who must be able to enter.
    await chmod(cwd, 0o755);
    try {
      const killed = new AbortController();
      const args = ["--conditions=@pawl/source", "--import", tsx, join(root, "examples/checkout.ts")];
      const first = promisify(execFile)(process.execPath, args, {
        cwd,
        signal: killed.signal,
        killSignal: "SIGKILL",
      });
      let printed = "";
      first.child.stdout?.on("data", (chunk: string) => {
        printed += chunk;
        // It charges first, and then sleeps for ten seconds: killed there, it holds no lease that must run out.
        setTimeout(() => killed.abort(), 3_000);
      });
      await expect(first).rejects.toMatchObject({ name: "AbortError" });
      expect(printed).toMatch(/^Charge order 9182, key .*\n$/);
      expect(await runProgram("examples/checkout.ts", { cwd })).toBe(
        "How was order 9182?\n{ orderId: 9182, carrier: 'dhl' }\n",
      );
    } finally {
      await rm(cwd, { recursive: true, force: true });
    }
  });
});
