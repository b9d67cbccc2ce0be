import type { RunEvent } from "../core/event.ts";
import type { Holding } from "./holding.ts";

/** Which side of each patch this run is on. */
export interface Patches {
  /** True on the new side. The answer for an id never changes: not in this execution, and not in a later one. */
  isNew(id: string): boolean;
}

export interface PatchesParts {
  readonly history: readonly RunEvent[];
  readonly holding: Pick<Holding, "add">;
}

/**
 * A run that comes to a patch on new ground takes the new side, and a fact says so: it goes with the next write, before
 * all that the new side does. One whose history goes on has been past that place without the patch, or is in an attempt
 * that repeats one which was: it stays on the old side. What remains of a history now remains of any longer one, so this
 * needs no fact to come out the same again.
 * @param isNewGround nothing of the history remains that the code has not asked for
 */
export function createPatches({ history, holding }: PatchesParts, isNewGround: () => boolean): Patches {
  const sides = new Map<string, boolean>();
  for (const { kind, name } of history) if (kind === "patched" && name !== null) sides.set(name, true);

  return {
    isNew(id) {
      const known = sides.get(id);
      if (known !== undefined) return known;
      const isNew = isNewGround();
      sides.set(id, isNew);
      if (isNew) holding.add({ kind: "patched", name: id, data: null });
      return isNew;
    },
  };
}
