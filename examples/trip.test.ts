import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { test } from "pawl-test-support";
import { expect } from "vitest";

const args = (name: string): string[] => [
  "--import",
  "tsx",
  "--conditions=@pawl/source",
  join(import.meta.dirname, name),
];

test("the trip of the first page is booked by two processes", { timeout: 60_000 }, async ({ database }) => {
  const env = { ...process.env, DATABASE_URL: database.url };
  const worker = spawn(process.execPath, args("worker.ts"), { env, stdio: "ignore" });
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args("start-trip.ts"), {
      env,
      timeout: 50_000,
    });
    expect(stdout).toMatch(
      /^\{\n {2}room: 'hotel-Oslo',\n {2}flight: '[0-9a-f-]{36}',\n {2}by: 'Grace',\n {2}at: \d+\n\}\n$/,
    );
  } finally {
    const exited = once(worker, "exit");
    worker.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
  }
});
