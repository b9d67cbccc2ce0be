import { expect, test } from "vitest";
import { createDueTimer, type DueTimerParts } from "../../src/worker/due-timer.ts";
import { createManualWorld, type ManualWorld } from "../manual-world.ts";

type WakeDue = DueTimerParts["wakeDue"];

const nothing = { woken: 0, held: [], hasMore: false, isRenewed: false };

function timerIn(world: ManualWorld, wakeDue: WakeDue, { pollMs = 50, isFed = true }) {
  return createDueTimer({ ...world.seams(), wakeDue, pollMs, woken: () => {}, isFed: () => isFed });
}

test("what is known to be due stays known while a look is under way", async () => {
  const world = createManualWorld();
  const dueAt = world.clock.now() + 300;
  const answers: (() => void)[] = [];
  const wakeDue: WakeDue = async () => {
    await new Promise<void>((resolve) => answers.push(resolve));
    return { ...nothing, nextDueAt: dueAt, now: world.clock.now() };
  };
  const timer = timerIn(world, wakeDue, { pollMs: 50 });
  timer.start();
  await world.rest();
  answers[0]?.();
  await world.rest();
  expect(timer.dueInMs()).toBe(300);
  await world.advance(100);
  expect(answers).toHaveLength(2);
  expect(timer.dueInMs()).toBe(200);
  answers[1]?.();
  await timer.stop();
});

/** Where so many are due that every look finds as many as it takes, each of which takes some time. */
function createStorm(tookMs: number, isFed: boolean) {
  const world = createManualWorld();
  let looks = 0;
  const wakeDue: WakeDue = async (limit) => {
    looks += 1;
    await new Promise<void>((resolve) => void world.seams().timers.after(tookMs, resolve));
    return { ...nothing, woken: limit, hasMore: true, nextDueAt: 0, now: world.clock.now() };
  };
  const timer = timerIn(world, wakeDue, { pollMs: 50, isFed });
  return { world, timer, looks: () => looks };
}

test.for([
  { isFed: true, tookMs: 10, restMs: 30 },
  { isFed: false, tookMs: 10, restMs: 200 },
  { isFed: true, tookMs: 1_000, restMs: 250 },
  { isFed: false, tookMs: 1_000, restMs: 250 },
])("a worker that wakes many rests in between, and never for long: $isFed, $tookMs ms", async (storm) => {
  const { world, timer, looks } = createStorm(storm.tookMs, storm.isFed);
  timer.start();
  await world.rest();
  await world.advance(storm.tookMs);
  await world.advance(storm.restMs - 1);
  expect(looks()).toBe(1);
  await world.advance(1);
  expect(looks()).toBe(2);
  await world.advance(storm.tookMs);
  await timer.stop();
});

test("a worker that has got done what it took rests for a part of the time that took", async () => {
  const { world, timer, looks } = createStorm(10, true);
  timer.start();
  await world.rest();
  timer.hungry();
  expect(looks()).toBe(1);
  await world.advance(10);
  timer.hungry();
  await world.advance(1);
  expect(looks()).toBe(1);
  await world.advance(1);
  expect(looks()).toBe(2);
  await world.advance(10 + 29);
  expect(looks()).toBe(2);
  await world.advance(1);
  expect(looks()).toBe(3);
  await world.advance(10);
  await timer.stop();
});

test("a worker for which nothing is due, of as many as it looks at, does not hurry", async () => {
  const world = createManualWorld();
  let looks = 0;
  const wakeDue: WakeDue = async () => {
    looks += 1;
    return { ...nothing, hasMore: true, nextDueAt: 0, now: world.clock.now() };
  };
  const timer = timerIn(world, wakeDue, { pollMs: 5_000 });
  timer.start();
  await world.rest();
  await world.advance(249);
  expect(looks).toBe(1);
  await world.advance(1);
  expect(looks).toBe(2);
  await timer.stop();
});

test("a worker that could take more looks no sooner where all that is due was woken", async () => {
  const world = createManualWorld();
  let looks = 0;
  const wakeDue: WakeDue = async () => {
    looks += 1;
    const now = world.clock.now();
    return { ...nothing, woken: 3, nextDueAt: now + 1_000, now };
  };
  const timer = timerIn(world, wakeDue, { pollMs: 5_000 });
  timer.start();
  await world.rest();
  timer.hungry();
  await world.advance(500);
  expect(looks).toBe(1);
  await timer.stop();
});

test("who waits until nothing is due waits for no rest", async () => {
  const { world, timer, looks } = createStorm(10, false);
  timer.start();
  void timer.turned();
  await world.rest();
  for (let turn = 0; turn < 5; turn++) await world.advance(10);
  expect(looks()).toBeGreaterThanOrEqual(5);
  const stopped = timer.stop();
  await world.advance(10);
  await stopped;
});
