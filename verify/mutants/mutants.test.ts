import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { readMutants } from "./mutant.ts";

const mutants = readMutants();

test.each(mutants)("the mutant $name fits the source as it is", ({ path }) => {
  const check = (): unknown =>
    execFileSync("git", ["apply", "--check", path], {
      cwd: `${import.meta.dirname}/../..`,
      stdio: ["ignore", "ignore", "pipe"],
    });
  expect(check).not.toThrow();
});

test("there are mutants of all seventeen planted bugs, and at least ten in the SQL", () => {
  const numbers = mutants.flatMap(({ planted }) => planted ?? []);
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 17 }, (_, index) => index + 1));
  expect(mutants.filter(({ isInSql }) => isInSql).length).toBeGreaterThanOrEqual(10);
});
