import { entries, optionsOf, type Entry, type Ground } from "./entries.ts";
import { junk, type Junk } from "./junk.ts";

export interface BadCall {
  readonly label: string;
  readonly call: (ground: Ground) => unknown;
}

function bad(label: string, value: Junk, call: Entry): BadCall {
  return { label: `${label} with ${value.label}`, call: (ground) => call(ground, value.make()) };
}

/** Each option of each entry, which is left open. */
export const openOptions: Readonly<Record<string, Entry>> = Object.fromEntries(
  Object.entries(optionsOf).flatMap(([entry, { names, call }]) =>
    [...names.split(" "), "unknown"].map((name) => [
      `${entry}({ ${name}: … })`,
      (ground: Ground, value: unknown) => call(ground, { [name]: value }),
    ]),
  ),
);

/** Each argument and each option of each entry, with each piece of junk. */
export const badCalls: readonly BadCall[] = Object.entries({ ...openOptions, ...entries }).flatMap(
  ([label, call]) => junk.map((value) => bad(label, value, call)),
);
