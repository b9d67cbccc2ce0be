import { describe, expect, test } from "vitest";
import type { World } from "../conformance/world.ts";
import { useLanes } from "./lanes.ts";
import { ambientMoves, claimMove, holderMoves, tellMoves, workerMoves } from "./move-groups.ts";
import { moves as make, type Move } from "./move.ts";
import { toldButParked } from "./told-but-parked.ts";
import { ordersOf, playTracks, type Track } from "./track.ts";

const callers = ["read committed", "repeatable read"] as const;

/** A held run that has been told something it does not wait for: what it is told, its waking, and all else. */
async function buildHeldRun(world: World): Promise<readonly Move[]> {
  const lease = await world.startHeld();
  const { runId, workerId } = lease;
  const takes = await world.insert(runId, "signal:b");
  return [
    ...callers.map((isolation) =>
      make.tellInTransaction(isolation, world.message(runId, "signal:a"), isolation),
    ),
    make.wakeTold("wake it", [runId]),
    ...(await holderMoves(world, "it", lease, takes)),
    ...tellMoves(world, "it", runId),
    ...workerMoves(world, "its worker", workerId, []),
    ...ambientMoves([runId]),
    claimMove("another worker", await world.worker()),
  ];
}

// The message is stored, its sender commits, the run is woken. Whatever else begins before, between or after these, and
// ends whenever it likes, the run comes to hear of it.
describe("a signal sent in a caller's transaction", () => {
  const lanes = useLanes(3);

  test("is not overlooked, whatever happens to its run meanwhile", { timeout: 120_000 }, async () => {
    const [committed, repeatable, wake, ...others] = await lanes.prepare({
      name: "a held run",
      build: buildHeldRun,
    });
    const cases = [committed!, repeatable!].flatMap((signal) => others.map((other) => ({ signal, other })));
    const overlooked = await lanes.share(cases, async (lane, { signal, other }) => {
      const tracks: readonly [Track, Track] = [
        { session: lane.first, moves: [other] },
        { session: lane.second, moves: [signal, wake!] },
      ];
      const said: string[] = [];
      for (const order of ordersOf(tracks)) {
        await lane.restore();
        await playTracks(lane, tracks, order);
        const runIds = toldButParked(await lane.snapshot());
        if (runIds.length > 0) said.push(`${signal.name}, "${other.name}", order ${order.join("")}`);
      }
      return said;
    });
    expect(overlooked.flat()).toEqual([]);
    await lanes.expectNoDeadlock();
  });
});
