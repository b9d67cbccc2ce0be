import { describe, expect } from "vitest";
import type { RunId } from "../../src/core/ids.ts";
import { server } from "../../src/memory/fence.ts";
import type { Lease, NewEvent } from "../../src/store/lease.ts";
import type { StoreTest } from "./store-test.ts";
import { event, json, leaseMs, type World } from "./world.ts";

/** A run with everything a write could touch: a parent that waits for it, a child, a message to take. */
interface Scene {
  readonly lease: Lease;
  readonly childId: RunId;
  readonly messageId: string;
}

async function setScene(world: World): Promise<Scene> {
  const parentId = await world.startParked({ wants: ["child"] }, { queue: "parents" });
  const lease = await world.hold(await world.startChild(parentId, { queue: "fenced" }), { begin: false });
  const childId = await world.startChild(lease.runId, { queue: "children" });
  const messageId = world.nextId();
  await world.tell(lease.runId, "signal:a", { id: messageId });
  return { lease, childId, messageId };
}

type Write = (world: World, scene: Scene, lease: Lease) => Promise<unknown>;

/** Every transition that only a holder may make, with something to do in each part of it. */
const writes: Readonly<Record<string, Write>> = {
  begin: (world, _scene, lease) => world.store.begin(lease),
  record: (world, scene, lease) => world.store.record(recording(world, scene, lease)),
  readInbox: (world, _scene, lease) => world.readInbox(lease),
  "park until told": async (world, scene, lease) =>
    world.store.park({
      ...(await world.parking(lease, recording(world, scene, lease))),
      wants: ["signal:a"],
    }),
  "park until due": async (world, scene, lease) =>
    world.store.park({ ...(await world.parking(lease, recording(world, scene, lease))), delayMs: 5 }),
  end: async (world, scene, lease) => {
    const { events, children } = recording(world, scene, lease);
    const last = event(4, "cancelled", { attempt: 1 });
    return world.end(lease, "cancelled", { events: [...events, last], children, error: json(1) });
  },
  release: (world, _scene, lease) => world.store.release(lease),
};

function recording(world: World, scene: Scene, lease: Lease): Parameters<World["store"]["record"]>[0] {
  const events = [
    event(1, "signal_received", { takes: scene.messageId }),
    event(2, "timer_set", { delayMs: 10 }),
    event(3, "child_started"),
  ];
  return { lease, events, children: [world.newRun({ parent: { id: lease.runId, request: "call#2" } })] };
}

/** Every way to lose a lease; each answers the lease that no longer holds. */
const losses: Readonly<Record<string, (world: World, scene: Scene) => Promise<Lease>>> = {
  "with an older epoch": async (_world, { lease }) => ({ ...lease, epoch: lease.epoch - 1 }),
  "with a newer epoch": async (_world, { lease }) => ({ ...lease, epoch: lease.epoch + 1 }),
  "of another worker": async (world, { lease }) => ({ ...lease, workerId: await world.worker() }),
  "of a worker that nobody knows": async (world, { lease }) => ({ ...lease, workerId: world.nextId() }),
  "of a run that nobody holds": async (world, { lease, childId }) => ({ ...lease, runId: childId }),
  "of a run that is not there": async (world, { lease }) => ({ ...lease, runId: world.nextId() }),
  "whose worker was found dead": async (world, { lease }) => {
    await world.crash();
    return lease;
  },
  "whose run another worker holds since": async (world, { lease }) => {
    await world.crash();
    await world.hold(lease.runId);
    return lease;
  },
  "whose worker retired": async (world, { lease }) => {
    await world.store.retireWorker(lease.workerId);
    return lease;
  },
  "that a heartbeat gave back": async (world, { lease }) => {
    await world.store.heartbeat({
      workerId: lease.workerId,
      held: [],
      claimsKnownTo: Number.POSITIVE_INFINITY,
    });
    return lease;
  },
  "that was released": async (world, { lease }) => {
    await world.release(lease);
    return lease;
  },
  "that was released and claimed again by the same worker": async (world, { lease }) => {
    await world.release(lease);
    await world.hold(lease.runId, { workerId: lease.workerId });
    return lease;
  },
  "that was parked": async (world, { lease }) => {
    await world.park(lease);
    return lease;
  },
  "that has ended": async (world, { lease }) => {
    await world.end(lease);
    return lease;
  },
};

export function describeFencing(test: StoreTest): void {
  for (const [what, write] of Object.entries(writes)) {
    describe(`the fence: ${what}`, () => {
      for (const [how, lose] of Object.entries(losses)) {
        test(`a lease ${how} writes nothing anywhere`, async ({ world }) => {
          const scene = await setScene(world);
          const lost = await lose(world, scene);
          await world.expectUnchanged(() =>
            expect(write(world, scene, lost)).rejects.toMatchObject({ code: "LEASE_LOST" }),
          );
        });
      }

      test("a holder whose heartbeat is overdue may write as long as nobody has swept it", async ({
        world,
      }) => {
        const scene = await setScene(world);
        await world.clock.advance(leaseMs * 10);
        await expect(write(world, scene, scene.lease)).resolves.not.toThrow();
      });
    });
  }

  // The server was set back to an earlier point, and has the lease, but not all that its holder has recorded under it.
  describe("the fence: a history that ends before what its holder knows", () => {
    const step = (seq: number): NewEvent => event(seq, "step_completed", { name: `step ${seq}` });
    const elsewhere = (lease: Lease): Lease => ({ ...lease, server: server + 1 });
    const late: Readonly<Record<string, (world: World, lease: Lease) => Promise<unknown>>> = {
      record: (world, lease) => world.record(lease, [step(3), step(4)]),
      park: async (world, lease) => world.store.park({ ...(await world.parking(lease)), lastSeq: 2 }),
      "park with a fact": async (world, lease) =>
        world.store.park(await world.parking(lease, { events: [step(3)] })),
      end: (world, lease) => world.end(lease, "completed", { events: [event(3, "completed")] }),
      "end otherwise": (world, lease) => world.end(lease, "failed", { events: [event(3, "failed")] }),
    };
    for (const [what, write] of Object.entries(late)) {
      test(`${what}: writes nothing, and its worker gives it back`, async ({ world }) => {
        const lease = await world.startHeld();
        await world.record(lease, [step(1)]);
        await world.expectUnchanged(() =>
          expect(write(world, elsewhere(lease))).rejects.toMatchObject({ code: "LEASE_LOST" }),
        );
        const beat = { workerId: lease.workerId, held: [], claimsKnownTo: Number.POSITIVE_INFINITY };
        expect(await world.store.heartbeat(beat)).toMatchObject({ returned: 1 });
        await world.record(await world.hold(lease.runId), [step(2)]);
        expect(await world.history(lease.runId)).toMatchObject([{ seq: 1 }, { seq: 2 }]);
      });
    }

    test("a run that a call names twice is lost if it is so by one of them", async ({ world }) => {
      const lease = await world.startHeld();
      await world.record(lease, [step(1)]);
      const results = await Promise.allSettled([
        world.record(elsewhere(lease), []),
        world.record(elsewhere(lease), [step(3)]),
      ]);
      expect(results[1].status).toBe("rejected");
      expect(await world.history(lease.runId)).toHaveLength(1);
    });

    test("others of the same call are written, also those that have all", async ({ world }) => {
      const [short, whole] = [await world.startHeld(), await world.startHeld()];
      for (const lease of [short, whole]) await world.record(lease, [step(1)]);
      const results = await Promise.allSettled([
        world.record(elsewhere(short), [step(3)]),
        world.record(elsewhere(whole), [step(2)]),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    });
  });

  describe("the fence: several at once", () => {
    test("of two holders' writes at the same moment only the holder's counts", async ({ world }) => {
      const old = await world.startHeld();
      await world.crash();
      const holder = await world.hold(old.runId, { suspects: true });
      const write = (lease: Lease, name: string): Promise<unknown> =>
        world.record(lease, [event(2, "step_completed", { name })]);
      const results = await Promise.allSettled([write(old, "old"), write(holder, "new"), write(old, "old")]);
      expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected"]);
      expect(await world.history(old.runId)).toMatchObject([{ kind: "attempt_crashed" }, { name: "new" }]);
    });

    test("a lost lease among others does not hold them back", async ({ world }) => {
      const leases = [await world.startHeld(), await world.startHeld(), await world.startHeld()];
      await world.release(leases[1]!);
      const results = await Promise.allSettled(leases.map((lease) => world.end(lease)));
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    });
  });
}
