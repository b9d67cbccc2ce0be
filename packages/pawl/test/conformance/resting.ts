import { describe, expect } from "vitest";
import type { StoreTest } from "./store-test.ts";
import { leaseMs, type World } from "./world.ts";

const restMs = 12 * leaseMs;

async function rest(world: World, workerId: string): Promise<number | null> {
  const answer = await world.store.heartbeat({ workerId, held: [], claimsKnownTo: null, leaseMs: restMs });
  return answer.leaseMs;
}

/** Workers that hold nothing need not be heard as often. */
export function describeResting(test: StoreTest): void {
  describe("a worker that rests", () => {
    test("is not found dead before its long lease is over", async ({ world }) => {
      const workerId = await world.worker();
      expect(await rest(world, workerId)).toBe(restMs);
      await world.clock.advance(restMs - 1);
      expect(await world.sweep()).toMatchObject({ expiredWorkers: 0 });
      await world.clock.advance(1);
      expect(await world.sweep()).toMatchObject({ expiredWorkers: 1 });
    });

    test("is one that holds nothing, or no long lease is given", async ({ world }) => {
      const lease = await world.startHeld();
      expect(await rest(world, lease.workerId)).toBe(leaseMs);
      await world.end(lease);
      expect(await rest(world, lease.workerId)).toBe(restMs);
    });

    test("has its own lease again with the first claim that brings something, from then on", async ({
      world,
    }) => {
      const workerId = await world.worker();
      await rest(world, workerId);
      await world.clock.advance(restMs - 1);
      expect((await world.claim(workerId, { leaseMs })).runs).toEqual([]);
      await world.start();
      expect((await world.claim(workerId, { leaseMs })).runs).toHaveLength(1);
      await world.clock.advance(leaseMs - 1);
      expect(await world.sweep()).toMatchObject({ expiredWorkers: 0 });
      await world.clock.advance(1);
      expect(await world.sweep()).toMatchObject({ expiredWorkers: 1, recovered: 1 });
    });

    test("claims nothing once its long lease is over, though nobody has swept", async ({ world }) => {
      const workerId = await world.worker();
      await rest(world, workerId);
      await world.start();
      await world.clock.advance(restMs);
      await world.expectUnchanged(() =>
        expect(world.claim(workerId, { leaseMs })).rejects.toMatchObject({ code: "WORKER_EXPIRED" }),
      );
    });

    test("has its own lease again with the next ordinary heartbeat", async ({ world }) => {
      const workerId = await world.worker();
      await rest(world, workerId);
      const beat = { workerId, held: [], claimsKnownTo: null, leaseMs };
      expect(await world.store.heartbeat(beat)).toMatchObject({ alive: true, leaseMs });
    });
  });
}
