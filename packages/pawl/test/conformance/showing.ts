import { describe, expect } from "vitest";
import { publishName, requestKey } from "../../src/core/request-key.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json } from "./world.ts";

export function describeShowing(test: StoreTest): void {
  describe("reading what a run has published", () => {
    test("finds the last value of each key, by key, in whatever scope it was published", async ({
      world,
    }) => {
      const lease = await world.startHeld();
      const published = (seq: number, scope: string, key: string, occurrence: number, value: unknown) =>
        event(seq, "published", {
          name: requestKey(scope, publishName(key), occurrence),
          data: json(value, `{"types":${seq}}`),
        });
      await world.record(lease, [
        published(1, "", "stage", 1, "first"),
        published(2, "orders#2", "stage", 1, "second"),
        event(3, "step_completed", { name: "publish:stage", data: json("no") }),
        published(4, String.raw`a\/b/c`, String.raw`x/y#2\z`, 11, null),
        published(5, "", "Umlaut ä", 2, {}),
        event(6, "published", { name: "publish:none", data: null }),
      ]);
      const all = await world.store.readPublished(lease.runId, null);
      expect(all.map(({ key, name, data }) => [key, name, data])).toEqual([
        ["Umlaut ä", "publish:Umlaut ä#2", json({}, `{"types":5}`)],
        ["none", "publish:none", null],
        ["stage", "orders#2/publish:stage", json("second", `{"types":2}`)],
        [String.raw`x/y#2\z`, expect.stringMatching(/#11$/), json(null, `{"types":4}`)],
      ]);
      for (const record of all)
        expect(await world.store.readPublished(lease.runId, record.key)).toEqual([record]);
      expect(all[0]?.at).toBe(await world.now());
      expect(await world.store.readPublished(lease.runId, "stage#2")).toEqual([]);
    });

    test("finds nothing of other runs, and what is left of those that ended", async ({ world }) => {
      const lease = await world.startHeld();
      await world.end(lease, "failed", {
        events: [event(1, "published", { name: "publish:a", data: json(1) }), event(2, "failed")],
      });
      expect(await world.store.readPublished(lease.runId, "a")).toMatchObject([{ data: json(1) }]);
      expect(await world.store.readPublished(await world.start(), null)).toEqual([]);
      expect(await world.store.readPublished(world.nextId(), null)).toEqual([]);
    });
  });
}
