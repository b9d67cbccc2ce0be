import { expect, test } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { createDueTimer } from "../../src/worker/due-timer.ts";
import { createManualWorld } from "../manual-world.ts";

test("what is known to be due stays known while a look is under way", async () => {
  const world = createManualWorld();
  const dueAt = world.clock.now() + 300;
  const answers: (() => void)[] = [];
  const wakeDue: Store["wakeDue"] = async () => {
    await new Promise<void>((resolve) => answers.push(resolve));
    return { woken: 0, nextDueAt: dueAt, now: world.clock.now() };
  };
  const store = { ...world.store, wakeDue };
  const timer = createDueTimer({
    ...world.seams({ store }),
    pollMs: 50,
    woken: () => {},
    isFed: () => true,
  });
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
