import { describe, expect } from "vitest";
import type { Hint } from "../../src/store/hint.ts";
import { hearMarker } from "./hints-of.ts";
import type { StoreTest } from "./store-test.ts";

export function describeListening(test: StoreTest): void {
  describe("listening", () => {
    test("every listener hears of everything", async ({ world }) => {
      const heard: [Hint[], Hint[]] = [[], []];
      const stops = heard.map((list) => world.store.subscribe((hint) => list.push(hint)));
      for (const list of heard) await hearMarker(world, () => list);
      await world.start({ queue: "here" });
      for (const list of heard) {
        await hearMarker(world, () => list);
        expect(list).toContainEqual({ kind: "ready", queue: "here" });
      }
      for (const stop of stops) stop();
    });

    test("a listener that has stopped hears no more, and the others still do", async ({ world }) => {
      const stopped: Hint[] = [];
      const going: Hint[] = [];
      const stop = world.store.subscribe((hint) => stopped.push(hint));
      const stopOther = world.store.subscribe((hint) => going.push(hint));
      await hearMarker(world, () => stopped);
      stop();
      stop();
      const count = stopped.length;
      await hearMarker(world, () => going);
      expect(stopped).toHaveLength(count);
      stopOther();
    });
  });
}
