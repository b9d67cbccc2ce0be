import {
  referenceOf,
  type Known,
  type Later,
  type Node,
  type Quorum,
  type Reference,
  type Settled,
  type SettledNode,
} from "./reference.ts";

/** What may stand where a task wants such a value: the value, a reference to one, or an object or list of those. */
type Source<Value> = Value | Known<Value> | Later<Value> | Parts<Value>;

/** The same where a node may begin before all is there: the task must take `undefined` for what is missing. */
type SourceOfWhatMayBeMissing<Value> =
  | Value
  | Known<Value>
  | (undefined extends Value ? Later<Value> : never)
  | PartsOfWhatMayBeMissing<Value>;

type Whole = Date | Error | Uint8Array | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>;

type Parts<Value> = Value extends Whole
  ? never
  : Value extends object
    ? { readonly [Key in keyof Value]: Source<Value[Key]> }
    : never;

type PartsOfWhatMayBeMissing<Value> = Value extends Whole
  ? never
  : Value extends object
    ? { readonly [Key in keyof Value]: SourceOfWhatMayBeMissing<Value[Key]> }
    : never;

/** What a task's input may be made of. Its own fields come first in messages: most inputs are objects. */
export type Inputs<Value, Join, After, Given> = (MayMiss<Join, After, Given> extends true
  ? [Value] extends [object]
    ? PartsOfWhatMayBeMissing<Value> | Known<Value>
    : SourceOfWhatMayBeMissing<Value>
  : [Value] extends [object]
    ? Parts<Value> | Known<Value> | Later<Value>
    : Source<Value>) &
  ([Value] extends [readonly unknown[]]
    ? unknown
    : [Value] extends [object]
      ? Strict<Given, KeysOf<Value> | keyof Node | keyof SettledNode | keyof Known<unknown>, NoSuchInput>
      : unknown);

type NoSuchInput = TaskTakesNoSuchInput | Known<unknown>;

interface TaskTakesNoSuchInput {
  readonly "the task takes no such input": never;
}

/** Refuses what has other keys, with words. */
export type Strict<Given, Keys, Fault> = { readonly [Key in Exclude<keyof Given, Keys>]: Fault };

type KeysOf<Value> = Value extends unknown ? keyof Value : never;

/** Whether a node with this join may begin while something that it was given is missing. */
type MayMiss<Join, After, Given> = Join extends "any"
  ? true
  : Join extends Quorum<infer Least>
    ? [After] extends [never]
      ? Least extends Count<AwaitedKeys<Given>>
        ? false
        : true
      : true
    : false;

/** The inputs that wait for a node; those in which several may be cannot be counted, and count as too many. */
type AwaitedKeys<Given> = {
  [Key in keyof Given]: Given[Key] extends Later<unknown>
    ? Key
    : true extends IsAwaiting<Given[Key]>
      ? readonly [Key, 1] | readonly [Key, 2]
      : never;
}[keyof Given];

type IsAwaiting<Given> =
  Given extends Later<unknown>
    ? true
    : Given extends Known<unknown> | Whole
      ? false
      : Given extends object
        ? { [Key in keyof Given]: IsAwaiting<Given[Key]> }[keyof Given]
        : false;

type Count<Union, Counted extends readonly unknown[] = []> = [Union] extends [never]
  ? Counted["length"]
  : Count<Exclude<Union, LastOf<Union>>, [...Counted, unknown]>;

type LastOf<Union> = (Union extends unknown ? (give: () => Union) => void : never) extends (
  give: infer All,
) => void
  ? All extends () => infer Last
    ? Last
    : never
  : never;

/** Whether something in it may be skipped because of a `when`. */
export type IsConditional<Given> = true extends ConditionsIn<Given> ? true : false;

type ConditionsIn<Given> =
  Given extends Node<unknown, infer Conditional>
    ? Conditional
    : Given extends Known<unknown> | Later<unknown> | Whole
      ? false
      : Given extends object
        ? { [Key in keyof Given]: ConditionsIn<Given[Key]> }[keyof Given]
        : false;

/** What a graph that returns this ends with. */
export type ResultOf<Returned> = [Returned] extends [void]
  ? undefined
  : Returned extends Node<infer Value, infer Conditional>
    ? true extends Conditional
      ? Value | undefined
      : Value
    : Returned extends SettledNode<infer Value>
      ? Settled<Value>
      : Returned extends Known<infer Value>
        ? Value
        : Returned extends Whole
          ? Returned
          : Returned extends object
            ? { -readonly [Key in keyof Returned]: ResultOf<Returned[Key]> }
            : Returned;

/** Every reference in it. */
export function* referencesIn(source: unknown): Iterable<Reference> {
  const reference = referenceOf(source);
  if (reference !== null) yield reference;
  else if (hasParts(source)) for (const part of Object.values(source)) yield* referencesIn(part);
}

/** The source with the value of each reference in its place. */
export function fill(source: unknown, valueOf: (reference: Reference) => unknown): unknown {
  const reference = referenceOf(source);
  if (reference !== null) return valueOf(reference);
  if (!hasParts(source)) return source;
  if (Array.isArray(source)) return source.map((part) => fill(part, valueOf));
  return Object.fromEntries(Object.entries(source).map(([key, part]) => [key, fill(part, valueOf)]));
}

/** Lists and plain objects; what is in a map, say, is none of its parts. */
function hasParts(source: unknown): source is Readonly<Record<string, unknown>> | readonly unknown[] {
  if (typeof source !== "object" || source === null) return false;
  if (Array.isArray(source)) return true;
  const prototype: unknown = Object.getPrototypeOf(source);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
