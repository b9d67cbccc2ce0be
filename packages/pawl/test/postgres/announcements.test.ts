import { expect, test } from "vitest";
import { silentLog } from "../../src/core/log.ts";
import { createAnnouncements } from "../../src/postgres/announcements.ts";
import { systemTimers } from "../../src/system/system-timers.ts";

/** A listener that hears nothing until it is let. */
function createEar() {
  const told: (readonly string[])[] = [];
  const answers: { hear(): void; fail(): void }[] = [];
  const announcements = createAnnouncements(
    (runIds) => {
      told.push(runIds);
      return new Promise<void>((resolve, reject) =>
        answers.push({ hear: resolve, fail: () => reject(new Error("gone")) }),
      );
    },
    systemTimers,
    silentLog,
  );
  return { told, answers, announcements };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("ends are announced after the turn in which they came, those of one turn together, and those that come meanwhile next", async () => {
  const { told, answers, announcements } = createEar();
  announcements.add("a");
  announcements.add("b");
  expect(told).toEqual([]);
  await turn();
  announcements.add("c");
  await turn();
  expect(told).toEqual([["a", "b"]]);
  answers[0]?.hear();
  await turn();
  expect(told).toEqual([["a", "b"], ["c"]]);
  answers[1]?.hear();
  await announcements.told(1_000);
});

test("one that fails is not tried again, and keeps no other from being told", async () => {
  const { told, answers, announcements } = createEar();
  announcements.add("a");
  await turn();
  answers[0]?.fail();
  await announcements.told(1_000);
  announcements.add("b");
  await turn();
  answers[1]?.hear();
  await announcements.told(1_000);
  expect(told).toEqual([["a"], ["b"]]);
});

test("who waits for them does so for no longer than it is told to", async () => {
  const { told, announcements } = createEar();
  announcements.add("a");
  await announcements.told(20);
  expect(told).toEqual([["a"]]);
});
