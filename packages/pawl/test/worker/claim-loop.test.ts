import { describe, expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import { createClaimer } from "./claimer.ts";

describe("a claim loop", () => {
  test("fills its free slots in one claim", async () => {
    const claimer = createClaimer(10);
    await claimer.startMany(7);
    claimer.loop.start();
    await claimer.rest();
    expect(claimer.heldIds()).toHaveLength(7);
    expect(claimer.claims).toHaveLength(1);
  });

  test("asks soon for what others were taking, and ever more rarely while they go on", async () => {
    const claimer = createClaimer(10, (store) => ({
      claimRuns: async (request) => ({ ...(await store.claimRuns(request)), isCutShort: true as const }),
    }));
    claimer.loop.start();
    await claimer.rest();
    await claimer.advance(10);
    expect(claimer.claims).toHaveLength(2);
    await claimer.advance("3s");
    expect(claimer.claims.length).toBeGreaterThanOrEqual(40);
    expect(claimer.claims.length).toBeLessThanOrEqual(120);
    const before = claimer.claims.length;
    await claimer.start();
    await claimer.rest();
    expect(claimer.heldIds()).toHaveLength(1);
    expect(claimer.claims.length).toBe(before + 1);
    await claimer.advance(10);
    expect(claimer.claims.length).toBe(before + 2);
  });

  test("says that it could take more when it has taken all there was, and not when it has found nothing", async () => {
    const claimer = createClaimer(8);
    claimer.loop.start();
    await claimer.rest();
    expect(claimer.hungry()).toBe(0);
    await claimer.start();
    await claimer.rest();
    expect(claimer.hungry()).toBe(1);
    await claimer.startMany(20);
    await claimer.rest();
    expect(claimer.heldIds()).toHaveLength(8);
    const times = claimer.hungry();
    await claimer.end(4);
    await claimer.advance(10);
    expect(claimer.heldIds()).toHaveLength(8);
    expect(claimer.hungry()).toBe(times);
  });

  test("claims at once when told of work, and otherwise about once a second", async () => {
    const claimer = createClaimer(10);
    claimer.loop.start();
    await claimer.advance("10s");
    expect(claimer.claims.length).toBeGreaterThanOrEqual(8);
    expect(claimer.claims.length).toBeLessThanOrEqual(14);
    await claimer.start();
    await claimer.rest();
    expect(claimer.heldIds()).toHaveLength(1);
  });

  test("polls more rarely once a notification has come, and finds unannounced work all the same", async () => {
    const claimer = createClaimer(10, () => ({ subscribe: () => () => {} }));
    claimer.loop.start();
    await claimer.rest();
    claimer.loop.hint();
    await claimer.advance("60s");
    const polls = claimer.claims.length;
    expect(polls).toBeLessThan(25);
    await claimer.start();
    await claimer.advance("6s");
    expect(claimer.heldIds()).toHaveLength(1);
  });

  test("does not claim for a single slot while more work is waiting, but for no longer than 5 ms", async () => {
    const claimer = createClaimer(100);
    await claimer.startMany(300);
    claimer.loop.start();
    await claimer.rest();
    expect(claimer.claims).toHaveLength(1);
    await claimer.end(1);
    expect(claimer.claims).toHaveLength(1);
    await claimer.end(24);
    expect(claimer.claims).toHaveLength(2);
    await claimer.advance("1s");
    await claimer.end(1);
    await claimer.advance(5);
    expect(claimer.claims).toHaveLength(3);
    expect(claimer.claims[2]?.limit).toBe(1);
  });

  test.for([
    ["as many ahead of its slots as end within some milliseconds", 5, 50],
    ["none ahead that would wait for long runs", 1_000, 0],
  ] as const)("claims %s", async ([, slotMs, most]) => {
    const claimer = createClaimer(100);
    await claimer.startMany(700);
    claimer.loop.start();
    await claimer.rest();
    expect(claimer.slots.waiting()).toBe(0);
    for (let times = 0; times < 6; times++) {
      await claimer.advance(5);
      await claimer.end(25, slotMs);
    }
    expect(claimer.slots.waiting()).toBeGreaterThanOrEqual(most / 3);
    expect(claimer.slots.waiting()).toBeLessThanOrEqual(most);
  });

  test("has at most one claim in flight, and makes one more for all the hints that came meanwhile", async () => {
    const answers: (() => void)[] = [];
    const claimer = createClaimer(10, (store) => ({
      claimRuns: async (request) => {
        const answer = await store.claimRuns(request);
        await new Promise<void>((resolve) => answers.push(resolve));
        return answer;
      },
    }));
    claimer.loop.start();
    await claimer.rest();
    await claimer.startMany(5);
    await claimer.rest();
    expect(claimer.claims).toHaveLength(1);
    answers.shift()?.();
    await claimer.rest();
    expect(claimer.claims).toHaveLength(2);
    answers.shift()?.();
    await claimer.rest();
    expect(claimer.heldIds()).toHaveLength(5);
    expect(claimer.claims).toHaveLength(2);
  });

  test("tries a failed claim again, after a pause that grows", async () => {
    let failures = 3;
    const claimer = createClaimer(10, (store) => ({
      claimRuns: async (request) => {
        if (failures-- > 0) throw new PawlError("STORE_UNAVAILABLE", "The store is down.");
        return store.claimRuns(request);
      },
    }));
    await claimer.start();
    claimer.loop.start();
    await claimer.advance(10);
    expect(claimer.claims).toHaveLength(1);
    await claimer.advance("1s");
    expect(claimer.claims.length).toBeGreaterThanOrEqual(4);
    expect(claimer.heldIds()).toHaveLength(1);
  });

  test("goes on under a new id when the store says that the worker has expired", async () => {
    const claimer = createClaimer(10);
    claimer.loop.start();
    await claimer.rest();
    const firstId = claimer.registration.workerId;
    await claimer.store.retireWorker(firstId);
    await claimer.start();
    await claimer.advance("1s");
    expect(claimer.expired).toEqual([firstId]);
    expect(claimer.registration.workerId).not.toBe(firstId);
    expect(claimer.heldIds()).toHaveLength(1);
  });
});

describe("the moving mark", () => {
  test("while claims come back full, the next begins where the last one ended", async () => {
    const claimer = createClaimer(4);
    await claimer.startMany(40);
    claimer.loop.start();
    await claimer.rest();
    await claimer.end(4);
    const [first, second] = claimer.claims;
    expect(first?.lanes[0]?.after).toBeNull();
    expect(second?.lanes[0]?.after).not.toBeNull();
    expect(claimer.heldIds()).toHaveLength(4);
  });

  test("nothing that stands before the mark is overlooked for longer than 50 ms, however much work is waiting", async () => {
    const claimer = createClaimer(4);
    await claimer.startMany(400);
    claimer.loop.start();
    await claimer.rest();
    await claimer.end(4);
    await claimer.advance(10);

    const urgent = await claimer.start({ priority: -1 });
    const startedAt = claimer.clock.now();
    while (!claimer.heldIds().includes(urgent)) {
      await claimer.end(2);
      await claimer.advance(1);
    }
    expect(claimer.clock.now() - startedAt).toBeLessThanOrEqual(50);
    const full = claimer.claims.filter((claim) => claim.lanes[0]?.after === null);
    expect(full.length).toBeLessThanOrEqual(2);
    expect(claimer.claims.length).toBeGreaterThan(20);
  });

  test("a marked claim that comes back short is followed by a full look, at the moment the bound allows", async () => {
    const claimer = createClaimer(4);
    await claimer.startMany(6);
    claimer.loop.start();
    await claimer.rest();
    await claimer.advance(5);
    const urgent = await claimer.start({ priority: -1 });
    await claimer.end(4);
    expect(claimer.heldIds()).not.toContain(urgent);
    await claimer.advance(44);
    expect(claimer.heldIds()).not.toContain(urgent);
    await claimer.advance(1);
    expect(claimer.heldIds()).toContain(urgent);
  });

  test("an idle worker overlooks nothing at all", async () => {
    const claimer = createClaimer(10);
    claimer.loop.start();
    await claimer.start({ priority: 5 });
    await claimer.rest();
    await claimer.advance(60);
    await claimer.start({ priority: -5 });
    await claimer.rest();
    expect(claimer.heldIds()).toHaveLength(2);
  });

  test("after hints may have been lost, the next look is a full one", async () => {
    const claimer = createClaimer(4);
    await claimer.startMany(40);
    claimer.loop.start();
    await claimer.rest();
    claimer.loop.lookAtAll();
    await claimer.end(4);
    expect(claimer.claims[1]?.lanes[0]?.after).toBeNull();
  });
});
