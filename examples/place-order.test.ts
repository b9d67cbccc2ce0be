import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "pawl-test-support";
import { expect } from "vitest";

test("the example of a run started with its order keeps what it says", async ({ database }) => {
  const program = join(import.meta.dirname, "place-order.ts");
  const args = ["--import", "tsx", "--conditions=@pawl/source", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, DATABASE_URL: database.url },
    timeout: 15_000,
  });
  expect(stdout.trim().split("\n")).toEqual([
    "Thank you for order 1.",
    "Order 1: completed.",
    expect.stringMatching(/^Order 2: .*violates check constraint/),
    "Runs: 1.",
  ]);
});
