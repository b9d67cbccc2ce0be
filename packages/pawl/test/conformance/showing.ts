import { describe, expect } from "vitest";
import { publishName, requestKey } from "../../src/core/request-key.ts";
import { hintsOf } from "./hints-of.ts";
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

  describe("answering an update", () => {
    test("notes the answer with the message, once, and says so", async ({ world }) => {
      const lease = await world.startHeld();
      const { runId } = lease;
      const message = world.message(runId, "update:set", { idempotencyKey: "k" });
      await world.store.tell(message);
      const ask = (messageId: string, idempotencyKey: string | null) =>
        world.store.getAnswers([{ runId, messageId, idempotencyKey }]);
      const open = { topic: "update:set", answer: null, isEnded: false };
      expect(await ask(message.id, null)).toEqual([open]);

      const name = "update:set";
      await world.record(lease, [event(1, "update_received", { name, takes: message.id })]);
      expect(await ask(message.id, null)).toEqual([open]);
      const data = json({ status: "answered", output: 1 }, `{"output":{}}`);
      const answered = event(2, "update_answered", { name, data, takes: message.id });
      const hints = await hintsOf(world, () => world.record(lease, [answered]));
      expect(hints).toEqual([{ kind: "answered", runId }]);
      await world.expectUnchanged(() => world.record(lease, [answered]));
      expect(await world.inbox(runId)).toMatchObject([{ takenSeq: 1, answerSeq: 2 }]);

      const found = { topic: "update:set", answer: { name, data }, isEnded: false };
      expect(await ask(message.id, null)).toEqual([found]);
      expect(await ask(world.nextId(), "k")).toEqual([found]);
      expect(await ask(world.nextId(), "other")).toEqual([{ topic: null, answer: null, isEnded: false }]);
      await world.end(lease);
      expect(await ask(message.id, "k")).toEqual([{ ...found, isEnded: true }]);
    });

    test("one fact can take an update and answer it", async ({ world }) => {
      const lease = await world.startHeld();
      const { runId } = lease;
      const [first, second] = [world.message(runId, "update:a"), world.message(runId, "update:b")];
      await world.store.tell(first);
      await world.store.tell(second);
      const refused = event(1, "update_answered", { data: json({ status: "refused" }), takes: first.id });
      await world.park(lease, { events: [refused], wants: [] });
      expect(await world.inbox(runId)).toMatchObject([
        { takenSeq: 1, answerSeq: 1 },
        { takenSeq: null, answerSeq: null },
      ]);
      const questions = [second, first].map(({ id }) => ({ runId, messageId: id, idempotencyKey: null }));
      const gone = { runId: world.nextId(), messageId: first.id, idempotencyKey: null };
      expect(await world.store.getAnswers([...questions, gone])).toEqual([
        { topic: "update:b", answer: null, isEnded: false },
        { topic: "update:a", answer: { name: null, data: json({ status: "refused" }) }, isEnded: false },
        { topic: null, answer: null, isEnded: true },
      ]);
    });

    test("does nothing without the lease", async ({ world }) => {
      const lease = await world.startHeld();
      const message = world.message(lease.runId, "update:a");
      await world.store.tell(message);
      const lost = { ...lease, epoch: lease.epoch + 1 };
      const answered = event(1, "update_answered", { takes: message.id });
      await world.expectUnchanged(() =>
        expect(world.record(lost, [answered])).rejects.toMatchObject({ code: "LEASE_LOST" }),
      );
    });
  });
}
