import { describe, expect, test } from "vitest";
import { createClaimer, leaseMs } from "./claimer.ts";

describe("a run suspected of killing its worker", () => {
  test("is tried by an empty worker, alone", async () => {
    const claimer = createClaimer(10);
    const suspect = await claimer.startSuspect();
    claimer.loop.start();
    await claimer.rest();
    expect(claimer.heldIds()).toEqual([suspect]);

    await claimer.startMany(3);
    await claimer.advance("10s");
    expect(claimer.heldIds()).toEqual([suspect]);
    await claimer.end(suspect);
    expect(claimer.heldIds()).toHaveLength(3);
  });

  test("is alone for a while only: it may wait for a run that nobody else can take", async () => {
    const claimer = createClaimer(10);
    const suspect = await claimer.startSuspect();
    claimer.loop.start();
    await claimer.rest();
    const child = await claimer.start();
    await claimer.advance(4 * leaseMs - 1_000);
    expect(claimer.heldIds()).toEqual([suspect]);
    await claimer.advance(1_000);
    expect(claimer.heldIds()).toEqual([suspect, child]);
  });

  test("is tried beside what outlasts the emptying: that may wait for the suspect itself", async () => {
    const claimer = createClaimer(10);
    const parent = await claimer.startSuspect();
    claimer.loop.start();
    await claimer.rest();
    const child = await claimer.startSuspect();
    await claimer.advance(8 * leaseMs);
    expect(claimer.heldIds()).toEqual([parent]);
    await claimer.advance(4 * leaseMs);
    expect(claimer.heldIds()).toEqual([parent, child]);
  });

  test("once a worker knows what outlasts its emptying, it leaves the next to idle peers for a lease, and waits no more", async () => {
    const claimer = createClaimer(10);
    const suspects = [await claimer.startSuspect(), await claimer.startSuspect()];
    const lasting = await claimer.start();
    claimer.loop.start();
    await claimer.advance(7 * leaseMs);
    expect(claimer.heldIds()).toEqual([lasting, suspects[0]]);
    await claimer.end(suspects[0]!);
    await claimer.advance(0.9 * leaseMs);
    expect(claimer.heldIds()).toEqual([lasting]);
    await claimer.advance(1.3 * leaseMs);
    expect(claimer.heldIds()).toEqual([lasting, suspects[1]]);
  });

  test("what comes in while a worker empties itself is not taken for something that outlasts it", async () => {
    let answer = (): void => {};
    let isSlow = false;
    const claimer = createClaimer(10, (store) => ({
      async claimRuns(request) {
        const claim = await store.claimRuns(request);
        if (isSlow && !request.suspects) await new Promise<void>((resolve) => (answer = resolve));
        return claim;
      },
    }));
    await claimer.startSuspect();
    const lasting = await claimer.start();
    claimer.loop.start();
    await claimer.rest();
    isSlow = true;
    const late = await claimer.start();
    await claimer.advance(6 * leaseMs);
    isSlow = false;
    answer();
    await claimer.rest();
    expect(claimer.heldIds()).toEqual([lasting, late]);
  });

  test("many that outlast their trials leave ordinary work its time", async () => {
    const claimer = createClaimer(50);
    const suspects: string[] = [];
    for (let index = 0; index < 10; index += 1) suspects.push(await claimer.startSuspect());
    claimer.loop.start();
    await claimer.rest();
    let waits = 0;
    for (let second = 0; second < 600; second += 1) {
      const ordinary = await claimer.start();
      await claimer.advance("1s");
      if (!claimer.heldIds().includes(ordinary)) waits += 1;
      for (const runId of claimer.heldIds()) if (!suspects.includes(runId)) await claimer.end(runId);
    }
    expect(waits).toBeLessThan(400);
    expect(claimer.heldIds().length).toBeGreaterThan(2);
  });

  test("has to wait for ordinary runs after each trial, so that many suspects do not stop the work", async () => {
    const claimer = createClaimer(10);
    const first = await claimer.startSuspect();
    const second = await claimer.startSuspect();
    claimer.loop.start();
    await claimer.rest();
    expect(claimer.heldIds()).toEqual([first]);
    await claimer.startMany(2);
    await claimer.end(first);
    expect(claimer.heldIds()).toHaveLength(2);
    expect(claimer.heldIds()).not.toContain(second);
  });

  test("several of them are tried one after the other", async () => {
    const claimer = createClaimer(10);
    const suspects = [
      await claimer.startSuspect(),
      await claimer.startSuspect(),
      await claimer.startSuspect(),
    ];
    claimer.loop.start();
    for (const suspect of suspects) {
      await claimer.rest();
      expect(claimer.heldIds()).toEqual([suspect]);
      await claimer.end(suspect);
    }
    expect(claimer.heldIds()).toEqual([]);
  });

  test("a busy worker leaves it to idle peers for a lease, then empties itself for it", async () => {
    const claimer = createClaimer(2);
    await claimer.startMany(200);
    const suspect = await claimer.startSuspect();
    claimer.loop.start();
    await claimer.rest();

    const beganAt = claimer.clock.now();
    while (!claimer.heldIds().includes(suspect)) {
      await claimer.end(1);
      await claimer.advance("300ms");
    }
    expect(claimer.heldIds()).toEqual([suspect]);
    expect(claimer.clock.now() - beganAt).toBeGreaterThan(leaseMs);
    expect(claimer.clock.now() - beganAt).toBeLessThan(2.5 * leaseMs);
  });

  test("a worker that cannot empty itself goes back to ordinary work after a while", async () => {
    const claimer = createClaimer(2);
    await claimer.startMany(400);
    await claimer.startSuspect();
    claimer.loop.start();
    await claimer.rest();
    const [longRunning] = claimer.heldIds();

    let idleMs = 0;
    let busyMs = 0;
    for (let second = 0; second < 300; second += 1) {
      if (claimer.heldIds().length === 2) busyMs += 1_000;
      else idleMs += 1_000;
      const short = claimer.heldIds().find((runId) => runId !== longRunning);
      if (short !== undefined) await claimer.end(short);
      await claimer.advance("1s");
    }
    expect(idleMs).toBeGreaterThan(leaseMs);
    expect(busyMs).toBeGreaterThan(idleMs);
  });

  test("that nobody can claim does not make an idle worker spin", async () => {
    const claimer = createClaimer(10, (store) => ({
      claimRuns: async (request) => ({
        ...(await store.claimRuns({ ...request, limit: 0 })),
        suspectsWaiting: true,
      }),
    }));
    claimer.loop.start();
    await claimer.advance("10s");
    expect(claimer.claims.length).toBeLessThan(30);
  });
});
