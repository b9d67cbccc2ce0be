import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { test } from "pawl-test-support";
import { expect } from "vitest";

/** Runs one of the programs beside this file as a user would, and answers what it prints. */
async function runExample(name: string, databaseUrl: string): Promise<string> {
  const program = fileURLToPath(new URL(name, import.meta.url));
  const options = { env: { ...process.env, DATABASE_URL: databaseUrl }, timeout: 60_000 };
  const loader = ["--conditions=@pawl/source", "--import", "tsx"];
  const { stdout } = await promisify(execFile)(process.execPath, [...loader, program], options);
  return stdout;
}

test(
  "the program of the guide to failing prints what the guide says",
  { timeout: 60_000 },
  async ({ database }) => {
    const lines = (await runExample("failing.ts", database.url)).trim().split("\n");
    expect(lines).toEqual([
      "{ amount: 100, attempts: 3 }",
      expect.stringMatching(/^Run [0-9a-f-]{36} failed: The bank refuses 5000$/),
      "NonRetryableError",
    ]);
  },
);
