import { expect, test } from "vitest";
import { createRegistration } from "../../src/worker/registration.ts";
import { createManualWorld } from "../manual-world.ts";

test("an id that was said to be dead stays dead, though the answer to an earlier heartbeat comes in", async () => {
  const world = createManualWorld();
  const seams = world.seams();
  const worker = { leaseMs: 1_000, host: "test", pid: 1, queues: ["default"], concurrency: 1 };
  const registration = createRegistration(seams, worker);
  await registration.ensure();
  const { workerId } = registration;
  const sentAt = seams.clock.now();
  expect(registration.isAlive(workerId)).toBe(true);
  world.block("1s");
  expect(registration.isAlive(workerId)).toBe(false);
  registration.heard(workerId, sentAt + 900, 1_000);
  expect(registration.isAlive(workerId)).toBe(false);
});
