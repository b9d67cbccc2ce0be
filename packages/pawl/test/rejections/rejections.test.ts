import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

test(
  "rejections that a step leaves behind reach its process, and Pawl adds none, nor where code asks when it has returned",
  { timeout: 60_000 },
  async () => {
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const main = fileURLToPath(new URL("main.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions=@pawl/source", "--import", tsx, main],
      { timeout: 50_000 },
    );
    expect(JSON.parse(stdout)).toEqual({
      outcomes: ["the step's own", "completed done", "awaits", "won", ...Array<string>(5).fill("returned")],
      unhandled: ["Error: returns", "Error: throws"],
    });
  },
);
