import { longestDurationMs, parseDuration } from "./duration.ts";
import type { PawlError } from "./error.ts";
import { isRunId } from "./ids.ts";
import { nameFault } from "./name.ts";
import { invalidOptions, type Fault } from "./option-problem.ts";

/** Says what a value must be, as in "must be a function", or what is wrong inside of it; null where it is right. */
export type Check = (value: unknown) => string | readonly Fault[] | null;

export type Checks = Readonly<Record<string, Check>>;

/** Values read from the options, each once; those that are `undefined` or not known are left out. */
type Given = Readonly<Record<string, unknown>>;

/** Something that several options must fulfil together. Asked only if each of them is right by itself, or not given. */
export interface Rule {
  readonly of: readonly string[];
  /** @param names of all options, also of those that are `undefined` */
  readonly check: (given: Given, names: readonly string[]) => Fault | null;
}

interface MoreRules {
  readonly required?: readonly string[];
  readonly rules?: readonly Rule[];
}

const noRules: MoreRules = {};
const none: readonly never[] = [];

/**
 * Reads options, and refuses them if any is unknown, wrong or missing: all that is wrong is in one error. An option that is
 * `undefined` counts as not given. Answers a copy, so that what was checked is what is used.
 * @param what whose options they are, as in `workflow`
 * @throws {PawlError} `INVALID_OPTION` with `details.problems`
 */
export function checkOptions<Options extends object>(
  what: string | (() => string),
  options: Options,
  checks: Checks,
  more: MoreRules = noRules,
): Options {
  const { faults, given } = examine(options, checks, more);
  if (faults.length > 0) throw invalidOptions(typeof what === "string" ? what : what(), faults);
  return given as Options;
}

/** A check of options inside of options. */
export function checkNested(checks: Checks, more: MoreRules = noRules): Check {
  return (value) => {
    const { faults } = examine(value, checks, more);
    return faults.length === 0 ? null : faults;
  };
}

/** Two options of which only one may be given. */
export function exclude(option: string, other: string): Rule {
  return {
    of: [option, other],
    check: (given) =>
      given[option] === undefined || given[other] === undefined
        ? null
        : { kind: "wrong", option, fault: `cannot be given together with "${other}"` },
  };
}

interface Examined {
  readonly faults: readonly Fault[];
  readonly given: Given;
}

/** Options may come from anywhere, such as JSON: nothing in them is called, inherited or trusted to be readable. */
function examine(options: unknown, checks: Checks, { required = none, rules = none }: MoreRules): Examined {
  const faults: Fault[] = [];
  const given: Record<string, unknown> = {};
  let wrong: Set<string> | null = null;
  const refuse = (fault: Fault, option = fault.option): void => {
    faults.push(fault);
    (wrong ??= new Set()).add(option);
  };

  const isWrong = (option: string): boolean => wrong?.has(option) === true;

  const names = ownNames(options);
  if (typeof names === "string") return { faults: [{ kind: "wrong", option: "", fault: names }], given };
  for (const option of names) {
    const check = Object.hasOwn(checks, option) ? checks[option] : undefined;
    if (check === undefined) {
      refuse({ kind: "unknown", option, known: Object.keys(checks) });
      continue;
    }
    const read = readValue(options as object, option);
    if (read === null) refuse({ kind: "wrong", option, fault: "cannot be read" });
    else if (read.value !== undefined) {
      given[option] = read.value;
      for (const fault of faultsOf(option, attempt(check, read.value))) refuse(fault, option);
    }
  }
  for (const option of required) {
    if (given[option] === undefined && !isWrong(option))
      refuse({ kind: "wrong", option, fault: "must be given" });
  }
  for (const { of, check } of rules) {
    const fault = faults.length > 0 && of.some(isWrong) ? null : check(given, names);
    if (fault !== null) faults.push(fault);
  }
  return { faults, given };
}

/** The names of the options given, or what is wrong with the whole. */
function ownNames(options: unknown): readonly string[] | string {
  try {
    if (typeof options !== "object" || options === null || Array.isArray(options) || !isPlain(options))
      return "must be a plain object";
    return Object.keys(options);
  } catch {
    return "cannot be read";
  }
}

/** Of any realm: its prototype is null, or the end of the chain. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function readValue(options: object, option: string): { readonly value: unknown } | null {
  try {
    return { value: (options as Given)[option] };
  } catch {
    return null;
  }
}

/** A value may throw at whoever looks at it. */
function attempt(check: Check, value: unknown): ReturnType<Check> {
  try {
    return check(value);
  } catch {
    return "cannot be read";
  }
}

/** What a check has found, as faults of this option. */
function faultsOf(option: string, found: ReturnType<Check>): readonly Fault[] {
  if (found === null) return none;
  if (typeof found === "string") return [{ kind: "wrong", option, fault: found }];
  return found.map((fault) => within(option, fault));
}

/** A fault of the whole of a nested object has no option of its own. */
function within(option: string, fault: Fault): Fault {
  const path = fault.option === "" ? option : `${option}.${fault.option}`;
  if (fault.kind !== "unknown") return { ...fault, option: path };
  return { ...fault, option: path, known: fault.known.map((word) => `${option}.${word}`) };
}

/** The error for one thing that is wrong with a call. */
export function invalidOption(what: string, option: string, fault: string): PawlError {
  return invalidOptions(what, [{ kind: "wrong", option, fault }]);
}

export const checkFlag: Check = (value) => (typeof value === "boolean" ? null : "must be true or false");

export const checkFunction: Check = (value) => (typeof value === "function" ? null : "must be a function");

/** What a store can hold as a name, exactly. */
export const checkName: Check = (value) => nameFault(value);

export const checkRunId: Check = (value) => (isRunId(value) ? null : "must be the id of a run");

export function checkInteger(least: number, most: number): Check {
  return (value) => {
    if (typeof value !== "number" || !Number.isInteger(value)) return "must be a whole number";
    return value >= least && value <= most ? null : `must be from ${least} to ${most}`;
  };
}

export function checkNumber(least: number, most: number): Check {
  return (value) =>
    typeof value === "number" && value >= least && value <= most
      ? null
      : `must be a number from ${least} to ${most}`;
}

export function checkOneOf(...allowed: readonly string[]): Check {
  return (value) =>
    allowed.includes(value as string) ? null : `must be ${allowed.map((word) => `"${word}"`).join(" or ")}`;
}

export const checkDuration: Check = (value) => {
  const ms = durationMs(value);
  if (ms === null) return 'must be a duration, such as "30s"';
  return ms > longestDurationMs ? "must be at most 365000d, a thousand years" : null;
};

/** A duration within bounds, which are named as a person would write them. */
export function checkDurationFrom(least: string, most: string): Check {
  const leastMs = parseDuration(least);
  const mostMs = parseDuration(most);
  return (value) => {
    const ms = durationMs(value);
    return ms !== null && ms >= leastMs && ms <= mostMs
      ? null
      : `must be a duration from "${least}" to "${most}"`;
  };
}

/** A list with some items, each of which is right; a wrong one is named by its place. */
export function checkList(item: Check, most: number): Check {
  return (value) => {
    if (!Array.isArray(value) || value.length === 0) return "must be a list that is not empty";
    if (value.length > most) return `must be a list of at most ${most}`;
    const faults = Array.from(value as readonly unknown[]).flatMap((each, index) =>
      faultsOf(String(index), attempt(item, each)),
    );
    return faults.length === 0 ? null : faults;
  };
}

/**
 * An object in which every key is a name, and every value is right.
 * @param what its values are, as in `schemas`
 */
export function checkEach(item: Check, what: string): Check {
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return `must be an object of ${what}`;
    const faults = Object.entries(value).flatMap(([name, each]) =>
      faultsOf(name, nameFault(name) ?? attempt(item, each)),
    );
    return faults.length === 0 ? null : faults;
  };
}

const mostItems = 10_000_000;

/** What is wrong with a list whose items are looked at later. One that only says that it is long would take all memory to look at. */
export function listFault(items: unknown): string | null {
  try {
    if (!Array.isArray(items)) return "must be a list";
    return items.length > mostItems ? `must be a list of at most ${mostItems}` : null;
  } catch {
    return "cannot be read";
  }
}

/** Tags of a run; none are tags too. */
export const checkTags: Check = (value) =>
  Array.isArray(value) && value.length === 0 ? null : checkList(checkName, 100)(value);

function durationMs(value: unknown): number | null {
  if (typeof value !== "string" && typeof value !== "number") return null;
  try {
    return parseDuration(value);
  } catch {
    return null;
  }
}
