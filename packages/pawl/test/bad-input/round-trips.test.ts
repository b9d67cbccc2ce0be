import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { aesGcmCodec, createPawl, PawlError, type Pawl, type PawlOptions } from "../../src/index.ts";
import { differenceOf } from "../core/rich-value.ts";
import { carriers, carrying, type Carry } from "./carriers.ts";
import { junk, type Junk } from "./junk.ts";
import { faultOf } from "./outcome.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

const codec = aesGcmCodec({ keys: [{ id: "one", key: new Uint8Array(32).fill(1) }] });
const places: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", () => ({ memory: true })],
  ["Postgres", (place) => ({ ...place, autoMigrate: true })],
  ["Postgres, encrypted", (place) => ({ ...place, autoMigrate: true, codec })],
];

/** A run that fails has failed with a refusal, and whoever awaits it is told so. */
function refusalIn(error: unknown): unknown {
  return PawlError.is(error, "RUN_FAILED") && error.cause !== undefined ? refusalIn(error.cause) : error;
}

async function outcomeOf(pawl: Pawl, carry: Carry, { make, changes }: Junk): Promise<string> {
  let back: unknown;
  try {
    back = await carry(pawl, make);
  } catch (error) {
    const refusal = refusalIn(error);
    return PawlError.is(refusal, "INVALID_PAYLOAD") || changes ? "refused" : faultOf(refusal);
  }
  const difference = changes ? null : differenceOf(back, make());
  return difference === null ? "kept" : `came back with another ${difference}`;
}

describe.each(places)("through %s", (name, optionsIn) => {
  test(
    "junk comes back exactly as it went, or is refused, from every place in which values are kept",
    { timeout: 120_000 },
    async ({ pool, schema }) => {
      await using pawl = createPawl(optionsIn({ pool, schema }));
      await pawl.worker({ workflows: carrying }).start();
      const wrong: string[] = [];
      const tally = new Map<string, number>();
      const ways = Object.entries(carriers).filter(
        ([way]) => name !== "memory" || way !== "a transaction's result",
      );
      const carryAll = async (way: string, carry: Carry): Promise<void> => {
        for (const value of junk) {
          const outcome = await outcomeOf(pawl, carry, value);
          tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
          if (outcome !== "kept" && outcome !== "refused") wrong.push(`${way}: ${value.label}: ${outcome}`);
        }
      };
      await Promise.all(ways.map(([way, carry]) => carryAll(way, carry)));
      expect(wrong).toEqual([]);
      expect(tally.get("kept")).toBeGreaterThan(junk.length * ways.length * 0.5);
      expect(tally.get("refused")).toBeGreaterThan(junk.length * ways.length * 0.1);
    },
  );
});
