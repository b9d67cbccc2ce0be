import type { RuntimeMutant } from "./runtime-mutants.ts";

/** Mistakes in what programs are offered beside steps, waits, children and races. */
export const programMutants: readonly RuntimeMutant[] = [
  {
    name: "a transaction commits though its run is in other hands",
    breaks: ["I2"],
    file: "runtime/native-transaction.ts",
    right: 'case "lost":\n      throw new NotHere();',
    wrong: 'case "lost":\n      return { told: false, now: 0 };',
  },
  {
    name: "a transaction whose COMMIT was lost is tried again without a look",
    breaks: ["I2", "I4", "I14", "I19"],
    file: "runtime/native-transaction.ts",
    right: "if (await entry.findOut()) return new Settled(null);",
    wrong: "",
  },
  {
    name: "a transaction elsewhere commits though it was taken over",
    breaks: ["I2"],
    file: "runtime/foreign-transaction.ts",
    right: "if (!(await on.completions.complete(handle, mine, isFirst, data))) throw new TakenOver();",
    wrong: "await on.completions.complete(handle, mine, isFirst, data);",
  },
  {
    name: "a run forgets that it took the new side of a patch",
    breaks: ["I14"],
    file: "runtime/patches.ts",
    right: 'if (kind === "patched" && name !== null) sides.set(name, true);',
    wrong: "",
  },
  {
    name: "a run on the old side of a patch is told to take the new one",
    breaks: ["I14"],
    file: "runtime/patches.ts",
    right: "const isNew = isNewGround();",
    wrong: "const isNew = true || isNewGround();",
  },
  {
    name: "code that does not fit its history goes on",
    breaks: ["I14", "I3", "I17"],
    file: "runtime/course.ts",
    right: "if (next === null) return this.#block();",
    wrong: "if (next === null) return this.#live();",
  },
];
