// Prints how the tests went, from the file that vitest's JSON reporter wrote: `tests: 12 passed, 0 failed`.
// In CI a skipped test counts as failed: what is not run there is run nowhere.

import { readFileSync } from "node:fs";

/** Full names of tests that CI may skip, each with the reason. */
const allowedSkips = new Map([]);

const report = readReport(process.argv[2]);
let passed = 0;
let failed = 0;
for (const file of report.testResults) {
  // A file that could not even be loaded.
  if (file.status === "failed" && file.assertionResults.length === 0) failed++;
  for (const { fullName, status } of file.assertionResults) {
    if (status === "passed") passed++;
    else if (status === "failed") failed++;
    else if (process.env["CI"] === "true" && !allowedSkips.has(fullName)) {
      failed++;
      console.log(`skipped in CI: ${fullName}`);
    }
  }
}
console.log(`tests: ${passed} passed, ${failed} failed`);
if (failed > 0 || passed === 0) process.exitCode = 1;

/** @param {string | undefined} path */
function readReport(path) {
  const text = readFileSync(path ?? "", "utf8");
  return text === "" ? { testResults: [] } : JSON.parse(text);
}
