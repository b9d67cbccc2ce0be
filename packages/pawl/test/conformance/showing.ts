import { describe, expect } from "vitest";
import { publishName, requestKey } from "../../src/core/request-key.ts";
import type { NewStreamItem } from "../../src/store/showing.ts";
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

  describe("writing to streams", () => {
    const item = (name: string, position: number, more: Partial<NewStreamItem> = {}): NewStreamItem => ({
      name,
      position,
      data: json(position),
      step: null,
      attempt: null,
      isFirst: false,
      isClosing: false,
      ...more,
    });

    test("appends in the transition that records, once, and says so", async ({ world }) => {
      const lease = await world.startHeld();
      const { runId } = lease;
      const written = [
        item("a", 1, { data: json("x", `{"types":1}`), step: "llm#2", attempt: 3, isFirst: true }),
        item("a", 2, { data: null }),
        item("b", 1),
      ];
      const recording = {
        lease,
        events: [event(1, "stream_written", { name: "stream:b" })],
        children: [],
        written,
      };
      const hints = await hintsOf(world, () => world.store.record(recording));
      expect(hints).toEqual([{ kind: "written", runId }]);
      await world.expectUnchanged(() => world.store.record(recording));
      await world.expectUnchanged(() =>
        world.store.record({ ...recording, events: [], written: [item("a", 1, { data: json("other") })] }),
      );
      const at = await world.now();
      const page = await world.store.readStream({ runId, name: "a", after: 0 }, 10);
      const { name: _, ...first } = written[0]!;
      const { name: __, ...second } = written[1]!;
      expect(page).toEqual({
        items: [
          { ...first, at },
          { ...second, at },
        ],
        isEnded: false,
      });
      expect(await world.store.lastPositions(runId, ["a", "b", "c"])).toEqual(
        new Map([
          ["a", 2],
          ["b", 1],
        ]),
      );
    });

    test("happens with parking and ending too, and never without the lease", async ({ world }) => {
      const lease = await world.startHeld();
      await world.park(lease, { written: [item("a", 1)] });
      const lost = { lease, events: [], children: [], written: [item("a", 2)] };
      await world.expectUnchanged(() =>
        expect(world.store.record(lost)).rejects.toMatchObject({ code: "LEASE_LOST" }),
      );
      const held = await world.startHeld({ queue: "other" });
      await world.end(held, "completed", {
        written: [item("a", 1), item("a", 2, { isClosing: true, data: null })],
      });
      const page = await world.store.readStream({ runId: held.runId, name: "a", after: 1 }, 10);
      expect(page).toMatchObject({ items: [{ position: 2, isClosing: true, data: null }], isEnded: true });
    });

    test("is read in pages, of so many items and not too many bytes", async ({ world }) => {
      const lease = await world.startHeld();
      const { runId } = lease;
      const small = Array.from({ length: 25 }, (_, index) => item("small", index + 1));
      await world.store.record({ lease, events: [], children: [], written: small });
      const positions = async (name: string, after: number, limit: number) =>
        (await world.store.readStream({ runId, name, after }, limit))?.items.map(({ position }) => position);
      expect(await positions("small", 0, 3)).toEqual([1, 2, 3]);
      expect(await positions("small", 23, 10)).toEqual([24, 25]);
      expect(await positions("small", 25, 10)).toEqual([]);
      expect(await positions("none", 0, 10)).toEqual([]);
      const data = json("x".repeat(999_998));
      for (let position = 1; position <= 9; position++)
        await world.store.record({
          lease,
          events: [],
          children: [],
          written: [item("large", position, { data })],
        });
      const seen: number[] = [];
      for (let page = await positions("large", 0, 1_000); page!.length > 0;) {
        seen.push(...page!);
        page = await positions("large", seen.length, 1_000);
      }
      expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      expect(await world.store.readStream({ runId: world.nextId(), name: "a", after: 0 }, 1)).toBeNull();
    });

    test("is news to whoever has not read so far, and so is the run's end", async ({ world }) => {
      const lease = await world.startHeld();
      const { runId } = lease;
      await world.store.record({ lease, events: [], children: [], written: [item("a", 1), item("a", 2)] });
      const places = [0, 1, 2, 5].map((after) => ({ runId, name: "a", after }));
      const other = [{ runId, name: "b", after: 0 }];
      expect(await world.store.findWritten([...places, ...other])).toEqual([true, true, false, false, false]);
      await world.end(lease);
      const gone = { runId: world.nextId(), name: "a", after: 0 };
      expect(await world.store.findWritten([...other, gone])).toEqual([true, true]);
    });
  });
}
