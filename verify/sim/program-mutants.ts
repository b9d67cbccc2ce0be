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
];
