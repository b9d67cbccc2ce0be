import { describe, expect } from "vitest";
import type { StoreTest } from "./store-test.ts";
import { event, json } from "./world.ts";

/** What happens when an answer was lost on its way and the caller asks again with the same words. */
export function describeRepeating(test: StoreTest): void {
  describe("asking again after a lost answer", () => {
    test("createRuns answers the same, and creates nothing more", async ({ world }) => {
      const runs = [world.newRun({ key: "k" }), world.newRun(), world.newRun({ key: "k" })];
      const first = await world.store.createRuns(runs);
      await world.clock.advance("1s");
      expect(await world.expectUnchanged(() => world.store.createRuns(runs))).toEqual(first);
    });

    test("claimRuns does not answer what it gave away, which the next heartbeat gives back", async ({
      world,
    }) => {
      const runId = await world.start();
      const workerId = await world.worker();
      await world.claim(workerId);
      expect(await world.expectUnchanged(() => world.claim(workerId))).toMatchObject({ runs: [] });
      await world.store.heartbeat({ workerId, held: [], claimsKnownTo: Number.POSITIVE_INFINITY });
      expect(await world.claim(workerId)).toMatchObject({ runs: [{ runId, epoch: 2, attempt: 1 }] });
    });

    test("begin keeps the first time", async ({ world }) => {
      const lease = await world.hold(await world.start(), { begin: false });
      await world.store.begin(lease);
      await world.clock.advance("1s");
      await world.expectUnchanged(() => world.store.begin(lease));
    });

    test("record writes nothing twice, and answers the same due times", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const [message] = await world.readInbox(lease);
      const child = world.newRun({ parent: { id: lease.runId, request: "call#1" }, queue: "children" });
      const events = [
        event(1, "signal_received", { takes: message!.id }),
        event(2, "timer_set", { delayMs: 1_000 }),
        event(3, "child_started", { data: json(child.id) }),
      ];
      const first = await world.record(lease, events, [child]);
      await world.clock.advance("5s");
      const again = await world.expectUnchanged(() => world.record(lease, events, [child]));
      expect(again).toEqual({ ...first, now: await world.now() });
    });

    test("readInbox answers the same messages", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const first = await world.readInbox(lease);
      expect(await world.expectUnchanged(() => world.readInbox(lease))).toEqual(first);
    });

    test("park of a run that was parked finds the lease gone", async ({ world }) => {
      const lease = await world.startHeld();
      const parking = await world.parking(lease, { events: [event(1, "timer_set", { delayMs: 10 })] });
      await world.store.park(parking);
      await world.expectUnchanged(() =>
        expect(world.store.park(parking)).rejects.toMatchObject({ code: "LEASE_LOST" }),
      );
    });

    test("park of a run that was told answers the same", async ({ world }) => {
      const lease = await world.startHeld();
      await world.tell(lease.runId, "signal:a");
      const parking = await world.parking(lease, {
        events: [event(1, "step_completed")],
        wants: ["signal:a"],
      });
      const first = await world.store.park(parking);
      expect(await world.expectUnchanged(() => world.store.park(parking))).toEqual(first);
    });

    test("park of a run that was due answers the same", async ({ world }) => {
      const lease = await world.startHeld();
      const parking = await world.parking(lease, { events: [event(1, "timer_set", { delayMs: 0 })] });
      const first = await world.store.park(parking);
      expect(first).toMatchObject({ outcome: "due" });
      expect(await world.expectUnchanged(() => world.store.park(parking))).toEqual(first);
    });

    test("end finds the lease gone, and reading shows that it was done", async ({ world }) => {
      const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
      const lease = await world.hold(await world.startChild(parentId));
      const ending = await world.ending(lease, "completed", { output: json(1) });
      await world.store.end(ending);
      await world.expectUnchanged(() =>
        expect(world.store.end(ending)).rejects.toMatchObject({ code: "LEASE_LOST" }),
      );
      const ends = await world.store.getEnds([lease.runId]);
      expect(ends.get(lease.runId)).toEqual({ status: "completed", output: json(1), error: null });
    });

    test("release finds the lease gone", async ({ world }) => {
      const lease = await world.startHeld();
      await world.store.release(lease);
      await world.clock.advance("1s");
      await world.expectUnchanged(() =>
        expect(world.store.release(lease)).rejects.toMatchObject({ code: "LEASE_LOST" }),
      );
    });

    for (const topic of ["signal:a", "cancel", "pause", "resume"] as const) {
      for (const [where, start] of [
        ["ready", "start"],
        ["held", "startHeld"],
        ["parked", "startParked"],
      ] as const) {
        test(`tell of ${topic} to a run that is ${where} stores one message, and wakes once`, async ({
          world,
        }) => {
          const started = start === "startParked" ? world.startParked({ wants: [topic] }) : world[start]();
          const run = await started;
          const runId = typeof run === "string" ? run : run.runId;
          const message = world.message(runId, topic);
          const first = await world.store.tell(message);
          await world.clock.advance("1s");
          expect(await world.expectUnchanged(() => world.store.tell(message))).toBe(first);
        });
      }
    }

    test("tell with an idempotency key, told anew by its sender, is one message", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await world.tell(runId, "signal:a", { idempotencyKey: "k" });
      await world.expectUnchanged(() => world.tell(runId, "signal:a", { idempotencyKey: "k" }));
    });

    test("wakeTold wakes once", async ({ world }) => {
      const runId = await world.startParked({ wants: ["signal:a"] });
      await world.insert(runId, "signal:a");
      await world.store.wakeTold([runId]);
      await world.clock.advance("1s");
      await world.expectUnchanged(() => world.store.wakeTold([runId]));
    });

    test("wakeDue wakes once", async ({ world }) => {
      await world.startParked({ delayMs: 10 });
      await world.clock.advance("1s");
      await world.store.wakeDue(10);
      await world.expectUnchanged(() => world.store.wakeDue(10));
    });

    test("heartbeat, at the same instant, gives nothing back twice", async ({ world }) => {
      const lease = await world.startHeld();
      const heartbeat = { workerId: lease.workerId, held: [], claimsKnownTo: Number.POSITIVE_INFINITY };
      await world.store.heartbeat(heartbeat);
      const again = await world.expectUnchanged(() => world.store.heartbeat(heartbeat));
      expect(again).toMatchObject({ alive: true, returned: 0 });
    });

    test("retireWorker keeps the first time", async ({ world }) => {
      const lease = await world.startHeld();
      await world.store.retireWorker(lease.workerId);
      await world.clock.advance("1s");
      await world.expectUnchanged(() => world.store.retireWorker(lease.workerId));
    });

    test("sweep takes nothing twice", async ({ world }) => {
      await world.startHeld();
      await world.start({ expiresAt: await world.now(), queue: "expiring" });
      const parked = await world.startParked({ wants: ["signal:a"] }, { queue: "parked" });
      await world.insert(parked, "signal:a");
      await world.crash();
      await world.clock.advance("1s");
      await world.expectUnchanged(() => world.sweep());
    });
  });
}
