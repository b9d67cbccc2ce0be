import { expect, test } from "vitest";
import { junk } from "../../pawl/test/bad-input/junk.ts";
import { EmbeddedPostgresError } from "../src/index.ts";
import { checkOptions } from "../src/options.ts";

const names = ["dir", "port", "strictPort", "durable", "settings", "binaries", "log", "signal"];

/** Null where it was accepted, or refused as it should be. */
function faultOf(options: unknown): string | null {
  try {
    checkOptions(options as object);
    return null;
  } catch (error) {
    return EmbeddedPostgresError.is(error, "INVALID_OPTION") && error.message.length < 5_000
      ? null
      : String(error).slice(0, 200);
  }
}

test("no junk given as options does harm: it is refused, or is right there", () => {
  const wrong: string[] = [];
  const note = (label: string, fault: string | null): void => {
    if (fault !== null) wrong.push(`${label}: ${fault}`);
  };
  for (const { label, make } of junk) {
    note(label, faultOf(make()));
    note(`a setting: ${label}`, faultOf({ settings: { work_mem: make() } }));
    for (const name of names) note(`${name}: ${label}`, faultOf({ [name]: make() }));
  }
  expect(wrong).toEqual([]);
});

test("each option that is misspelt is refused, and the right one is named", () => {
  for (const name of names)
    expect(() => checkOptions({ [name + name.at(-1)!]: 1 })).toThrow(`did you mean "${name}"?`);
});
