import { expect, test } from "vitest";
import { systemSettle } from "../../src/system/system-settle.ts";

const longChain = async (): Promise<void> => {
  for (let link = 0; link < 1_000; link++) await Promise.resolve();
};

test("promises that lead to promises have all gone on when they are settled, and nothing has waited for I/O", async () => {
  const seen: string[] = [];
  setImmediate(() => seen.push("I/O"));
  void longChain().then(() => seen.push("promises"));
  await systemSettle("promises");
  expect(seen).toEqual(["promises"]);
});

test("whatever has come in has gone on when all is settled", async () => {
  const seen: string[] = [];
  setImmediate(() => void longChain().then(() => seen.push("I/O")));
  await systemSettle();
  await systemSettle();
  expect(seen).toEqual(["I/O"]);
});

test("all who ask for everything in one turn are answered together", () => {
  expect(systemSettle()).toBe(systemSettle());
});
