import type { Rng } from "../sim/rng.ts";
import { pickGiven, pickText, type Given } from "./given.ts";

/** What is right for each option of `start`, at its ends and in between. */
const right: Readonly<Record<string, readonly unknown[]>> = {
  queue: ["default", "nobody", "'; drop table run; --", "é".repeat(127)],
  priority: [0, -(2 ** 31), 2 ** 31 - 1],
  at: [new Date(0), new Date(-8.64e15), new Date(8.64e15), new Date("2100-01-01")],
  delay: [0, 1, "1ms", "365000d", 1e12],
  deadline: [new Date(0), new Date(8.64e15), new Date("2100-01-01")],
  timeout: [0, 1, "30d", "365000d"],
  expiresAt: [new Date(0), new Date(8.64e15)],
  expiresIn: [0, "1ms", "365000d"],
  tags: [[], ["a"], ["__proto__", "a\nb", "👩‍👩‍👧‍👦"], Array.from({ length: 100 }, (_, n) => `tag ${n}`)],
  retry: [{}, { attempts: 1_000 }, { delays: [0, "365d"] }, { backoff: "fixed", initial: 0 }],
  onConflict: ["return", "reject"],
};

/** Several options of `start` at once, most of them right. */
export function pickOptions(rng: Rng): Readonly<Record<string, Given>> {
  const options: Record<string, Given> = {};
  for (const [name, values] of Object.entries(right))
    if (rng.chance(0.25)) options[name] = rng.chance(0.05) ? pickGiven(rng) : given(rng.pick(values));
  if (rng.chance(0.3)) options["key"] = rng.chance(0.5) ? pickText(rng) : given(`key ${rng.next()}`);
  for (const name of ["queue", "key"]) if (rng.chance(0.1)) options[name] = pickText(rng);
  if (rng.chance(0.1)) options["tags"] = listOf(pickText(rng));
  return options;
}

function listOf({ label, make, changes }: Given): Given {
  return { label: `[${label}]`, make: () => [make()], changes };
}

function given(value: unknown): Given {
  return { label: JSON.stringify(value), make: () => value, changes: false };
}
