import { PawlError, type RunHandle } from "../../packages/pawl/src/index.ts";
import { openOptions } from "../../packages/pawl/test/bad-input/calls.ts";
import { carriers } from "../../packages/pawl/test/bad-input/carriers.ts";
import { entries, idle, type Entry, type Ground } from "../../packages/pawl/test/bad-input/entries.ts";
import { outcomeOf } from "../../packages/pawl/test/bad-input/outcome.ts";
import { differenceOf } from "../../packages/pawl/test/core/rich-value.ts";
import type { Rng } from "../sim/rng.ts";
import { ask, askable } from "./asking.ts";
import { pickGiven, pickText, smaller, type Given } from "./given.ts";
import { pickOptions } from "./options.ts";
import { throwIt, waysToThrow } from "./throwing.ts";

export interface Field extends Ground {
  readonly isMemory: boolean;
  /** Runs that somebody was told of. */
  readonly acknowledged: Acknowledged[];
}

export interface Acknowledged {
  readonly run: RunHandle;
  readonly input: unknown;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Something to be asked of Pawl. */
export interface Call {
  readonly kind: CallKind;
  readonly label: string;
  /** What it came to: `accepted`, `refused`, or what is wrong. */
  readonly make: (field: Field) => Promise<string>;
  /** The same with less. */
  readonly smaller: () => Iterable<Call>;
}

export const callKinds = ["argument", "option", "options", "value", "request", "thrown", "filter"] as const;
type CallKind = (typeof callKinds)[number];

/** They would end, pause or retry what other calls were acknowledged for. */
const reachesAll = /^(?:cancel|pause|resume|retry|redrive)All\(…\)/;
const argumentPlaces = Object.entries(entries).filter(([label]) => !reachesAll.test(label));
const optionPlaces = Object.entries(openOptions);

export function pickCall(rng: Rng): Call {
  const kind = rng.pick(callKinds);
  switch (kind) {
    case "argument":
      return callEntry(kind, ...rng.pick(argumentPlaces), pickGiven(rng));
    case "option":
      return callEntry(kind, ...rng.pick(optionPlaces), pickGiven(rng));
    case "options":
      return startWith(pickOptions(rng), pickGiven(rng));
    case "value":
      return carryValue(rng.pick(Object.keys(carriers)), pickGiven(rng));
    case "request":
      return askFor(rng.pick(askable), pickGiven(rng));
    case "thrown":
      return throwOut(rng.pick(waysToThrow), pickGiven(rng));
    case "filter":
      return findBy(
        rng.pick(["workflow", "queue", "key", "errorCode", "tags"]),
        rng.chance(0.7) ? pickText(rng) : pickGiven(rng),
      );
    default:
      return kind satisfies never;
  }
}

function callEntry(kind: CallKind, place: string, entry: Entry, given: Given): Call {
  return callWith(kind, place, given, (field, value) => outcomeOf(() => entry(field, value.make())));
}

function callWith(
  kind: CallKind,
  place: string,
  given: Given,
  act: (field: Field, given: Given) => Promise<string>,
): Call {
  return {
    kind,
    label: `${place} with ${given.label.slice(0, 2_000)}`,
    make: (field) => act(field, given),
    *smaller() {
      for (const less of smaller(given)) yield callWith(kind, place, less, act);
    },
  };
}

function startWith(options: Readonly<Record<string, Given>>, input: Given): Call {
  const names = Object.keys(options);
  return {
    kind: "options",
    label: `start(idle, ${input.label.slice(0, 500)}, { ${names.map((name) => `${name}: ${options[name]?.label.slice(0, 300)}`).join(", ")} })`,
    make: (field) =>
      outcomeOf(async () => {
        const made = Object.fromEntries(names.map((name) => [name, options[name]?.make()]));
        const value = input.make();
        const run = await field.pawl.start(idle, value, made);
        const isExact = !input.changes && made["key"] === undefined;
        field.acknowledged.push({ run, input: isExact ? value : anything, options: made });
      }),
    *smaller() {
      for (const name of names) {
        const { [name]: _, ...rest } = options;
        yield startWith(rest, input);
      }
      for (const less of smaller(input)) yield startWith(options, less);
    },
  };
}

/** Stands for an input that need not come back as it went. */
export const anything = Symbol("anything");

function carryValue(way: string, given: Given): Call {
  return callWith("value", way, given, async (field, { make, changes }) => {
    if (field.isMemory && way === "a transaction's result") return "refused";
    const differences: string[] = [];
    const outcome = await outcomeOf(async () => {
      try {
        const back = await carriers[way]?.(field.pawl, make);
        const difference = changes ? null : differenceOf(back, make());
        if (difference !== null) differences.push(difference);
      } catch (error) {
        const reason = innermost(error);
        // What is awaited throws what it throws.
        if (!changes || PawlError.is(reason)) throw reason;
      }
    });
    return differences.length === 0 ? outcome : `came back with another ${differences.join()}`;
  });
}

function askFor(place: string, given: Given): Call {
  return callWith("request", place, given, (field, { make }) => answerOf(() => ask(field.pawl, place, make)));
}

function throwOut(way: string, given: Given): Call {
  return callWith("thrown", way, given, (field, { make }) => answerOf(() => throwIt(field.pawl, way, make)));
}

/** What a run says became of it, or what became of the run. */
async function answerOf(act: () => Promise<string>): Promise<string> {
  let said = "accepted";
  const outcome = await outcomeOf(async () => {
    said = await act();
  });
  return outcome === "accepted" ? said : outcome;
}

function findBy(name: string, given: Given): Call {
  return callWith("filter", `list by ${name}`, given, (field, { make }) => {
    let odd: string | null = null;
    return outcomeOf(async () => {
      const value = make();
      const filter = { [name]: name === "tags" ? [value] : value, limit: 100 };
      const { runs } = await field.pawl.list(filter);
      if (value !== undefined) odd = runs.find((run) => !isFound(run, name, value))?.id ?? null;
    }).then((outcome) => (odd === null ? outcome : `found run ${odd}, which it did not ask for`));
  });
}

function isFound(run: object, name: string, value: unknown): boolean {
  const { [name]: held, tags, error } = run as Readonly<Record<string, unknown>>;
  if (name === "tags") return (tags as readonly unknown[]).includes(value);
  if (name === "errorCode") return String((error as { readonly code?: unknown } | null)?.code) === value;
  return held === value;
}

/** The error of the run, or of the update, that failed. */
function innermost(error: unknown): unknown {
  const isOuter = PawlError.is(error, "RUN_FAILED") || PawlError.is(error, "UPDATE_FAILED");
  return isOuter && error.cause !== undefined ? innermost(error.cause) : error;
}
