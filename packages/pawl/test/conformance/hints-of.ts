import { expect, vi } from "vitest";
import type { Hint } from "../../src/store/hint.ts";
import type { World } from "./world.ts";

/**
 * The hints that follow from this, without repetitions. A hint of our own, before and after, shows that the
 * subscription is alive and that nothing more is on its way.
 */
export async function hintsOf(world: World, act: () => Promise<unknown>): Promise<readonly Hint[]> {
  let heard: Hint[] = [];
  const stop = world.store.subscribe((hint) => heard.push(hint));
  await hearMarker(world, () => heard);
  heard = [];
  await act();
  await hearMarker(world, () => heard);
  stop();
  return [...new Map(heard.filter(isOurs).map((hint) => [JSON.stringify(hint), hint])).values()];
}

/** Starts runs in queues of their own until the hint of one is heard. */
export async function hearMarker(world: World, heard: () => readonly Hint[]): Promise<void> {
  await vi.waitFor(
    async () => {
      const queue = `marker:${world.nextId()}`;
      await world.start({ queue });
      await vi.waitFor(() => expect(heard()).toContainEqual({ kind: "ready", queue }), {
        interval: 5,
        timeout: 500,
      });
    },
    { timeout: 10_000 },
  );
}

function isOurs(hint: Hint): boolean {
  return hint.kind !== "reconnected" && !(hint.kind === "ready" && hint.queue.startsWith("marker:"));
}
