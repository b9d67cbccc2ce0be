import { describe, expect, test } from "vitest";
import { createLoop } from "../src/core/loop.ts";
import { createManualWorld } from "./manual-world.ts";

describe("a loop", () => {
  test("takes its first turn at once, and the next when it has rested", async () => {
    const world = createManualWorld();
    let turns = 0;
    const loop = createLoop("work", world.seams(), async () => {
      turns += 1;
      return 100;
    });
    loop.start();
    loop.start();
    await world.advance(99);
    expect(turns).toBe(1);
    await world.advance(1);
    expect(turns).toBe(2);
  });

  test("pokes cut the rest short; many of them during one turn lead to one more", async () => {
    const world = createManualWorld();
    const ends: (() => void)[] = [];
    const loop = createLoop("work", world.seams(), async () => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return Number.POSITIVE_INFINITY;
    });
    loop.start();
    await world.rest();
    loop.poke();
    loop.poke();
    ends[0]?.();
    await world.rest();
    expect(ends).toHaveLength(2);
    ends[1]?.();
    await world.advance("1h");
    expect(ends).toHaveLength(2);
    loop.poke();
    await world.rest();
    expect(ends).toHaveLength(3);
  });

  test("whoever awaits a turn gets one that began later, succeeded, and led to a rest", async () => {
    const world = createManualWorld();
    const ends: ((restMs: number | null) => void)[] = [];
    const loop = createLoop("work", world.seams(), async () => {
      const restMs = await new Promise<number | null>((resolve) => ends.push(resolve));
      if (restMs === null) throw new Error("not today");
      return restMs;
    });
    let hasTurned = false;
    const endTurn = async (restMs: number | null): Promise<void> => {
      ends.at(-1)?.(restMs);
      await world.advance("1s");
    };
    loop.start();
    await world.rest();
    void loop.turned().then(() => (hasTurned = true));
    await endTurn(1_000_000);
    await endTurn(null);
    await endTurn(0);
    expect(hasTurned).toBe(false);
    await endTurn(1_000_000);
    expect(hasTurned).toBe(true);
    expect(ends).toHaveLength(4);
  });

  test("whoever awaits a turn of a loop that stops waits no longer", async () => {
    const world = createManualWorld();
    const loop = createLoop("work", world.seams(), () => Promise.reject(new Error("never")));
    loop.start();
    const turned = loop.turned();
    await loop.stop();
    await turned;
    await loop.turned();
  });

  test("a turn that fails is tried again after a growing pause, which no poke shortens", async () => {
    const world = createManualWorld();
    const turnsAt: number[] = [];
    const loop = createLoop("work", world.seams(), async () => {
      turnsAt.push(world.clock.now());
      throw new Error("not today");
    });
    loop.start();
    await world.rest();
    loop.poke();
    await world.advance(49);
    expect(turnsAt).toHaveLength(1);
    await world.advance("1m");
    const pauses = turnsAt.slice(1).map((at, index) => at - (turnsAt[index] ?? 0));
    expect(pauses[0]).toBeLessThanOrEqual(100);
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(2_500);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(5_000);
    expect(world.lines[0]).toMatchObject({ level: "warn", fields: { loop: "work", failures: 1 } });
  });

  test("stopping waits for the turn under way and leaves nothing behind", async () => {
    const world = createManualWorld();
    let end = (): void => {};
    let isStopped = false;
    const loop = createLoop("work", world.seams(), async () => {
      await new Promise<void>((resolve) => (end = resolve));
      return 100;
    });
    loop.start();
    await world.rest();
    const stopped = loop.stop().then(() => (isStopped = true));
    await world.rest();
    expect(isStopped).toBe(false);
    end();
    await stopped;
    expect(world.plannedCalls()).toBe(0);
    loop.start();
    loop.poke();
    await world.rest();
    expect(world.plannedCalls()).toBe(0);
  });
});
