import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { test } from "pawl-test-support";
import { expect } from "vitest";

test("the program of the guide on values does what the guide says", async ({ database, pool }) => {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
  const program = fileURLToPath(new URL("values.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@pawl/source", "--import", tsx, program],
    { env: { ...process.env, DATABASE_URL: database.url } },
  );
  const output = "articles: Set(1) { 'pen' }";
  expect(stdout.split(output)).toHaveLength(3);
  expect(stdout).toContain("id: 9007199254740993n");
  expect(stdout).toContain("due: 2026-11-29T09:30:00.000Z");
  expect(stdout).toContain("lines: Map(1) { 'pen' => 2 }");

  const { rows } = await pool.query(
    "select key, input, input_notes, output, output_notes from pawl.runs order by key",
  );
  expect(rows).toEqual([
    {
      key: "invoice:readable",
      input: {
        id: "9007199254740993",
        placedAt: "2026-11-15T09:30:00.000Z",
        lines: [["pen", 2]],
        label: "UGF3bA==",
      },
      input_notes: { types: { id: "bigint", placedAt: "Date", lines: "Map", label: "Uint8Array" } },
      output: { id: "9007199254740993", due: "2026-11-29T09:30:00.000Z", articles: ["pen"] },
      output_notes: { types: { id: "bigint", due: "Date", articles: "Set" } },
    },
    {
      key: "invoice:secret",
      input: { codec: "aes-gcm", data: expect.stringMatching(/^2026-11:/) },
      input_notes: { codec: "aes-gcm", digest: expect.any(String) },
      output: { codec: "aes-gcm", data: expect.stringMatching(/^2026-11:/) },
      output_notes: { codec: "aes-gcm" },
    },
  ]);
});
