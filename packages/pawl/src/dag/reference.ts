import { PawlError } from "../core/error.ts";

declare const later: unique symbol;
declare const known: unique symbol;

/** Stands for a value that is there once a node is over. */
export interface Later<Value> {
  readonly [later]: Value;
}

/** Stands for a value that is there whenever a node begins. */
export interface Known<Value> {
  readonly [known]: Value;
}

/**
 * A node of a graph, and its result wherever another's input may be. `Conditional`: it, or one that it rests on, has a
 * `when`, so it may be skipped and have no result.
 */
export interface Node<Value = unknown, Conditional extends boolean = boolean> extends Later<Value> {
  readonly name: string;
  /** Never there: carries the type. */
  readonly "~conditional"?: Conditional;
}

/** How a node ended. */
export type Settled<Value> =
  | { readonly status: "completed"; readonly value: Value }
  | { readonly status: "failed"; readonly error: Error }
  | { readonly status: "skipped"; readonly reason: string };

/** How a node ended, wherever another's input may be. */
export interface SettledNode<Value = unknown> extends Later<Settled<Value>> {
  readonly settled: Node<Value>;
}

/** A place in the graph's input, or in an item: a field of it is a reference too. */
export type InputReference<Value> = Known<Value> &
  (Value extends object ? { readonly [Key in keyof Value]-?: InputReference<Value[Key]> } : unknown);

/** So many of those that a node waits for must be there. */
export interface Quorum<Least extends number = number> {
  readonly least: Least;
}

/**
 * How this node ended, whichever way: who takes that as an input runs after a failure, too.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * g.node("audit", audit, { rows, copies: settled(copies) });
 */
export function settled<Value>(node: Node<Value>): SettledNode<Value> {
  if (!(node instanceof GraphNode)) throw new PawlError("INVALID_OPTION", "settled needs a node of a graph.");
  return new SettledReference(node) as unknown as SettledNode<Value>;
}

/** A node begins as soon as so many of those that it waits for are there. As an option: `join: quorum(2)`. */
export function quorum<const Least extends number>(least: Least): Quorum<Least> {
  return new QuorumOf(least);
}

class QuorumOf<Least extends number> implements Quorum<Least> {
  readonly #least: Least;

  constructor(least: Least) {
    this.#least = least;
  }

  // Told by its brand, not by its prototype, which a proxy may answer for, or refuse to.
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #least in value;
  }

  get least(): Least {
    return this.#least;
  }
}

export function isQuorum(value: unknown): value is Quorum {
  return value instanceof QuorumOf;
}

/** What a `Node` is beneath. */
export class GraphNode {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #name in value;
  }

  get name(): string {
    return this.#name;
  }
}

/** What a `SettledNode` is beneath. */
export class SettledReference {
  readonly #settled: GraphNode;

  constructor(node: GraphNode) {
    this.#settled = node;
  }

  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && #settled in value;
  }

  get settled(): GraphNode {
    return this.#settled;
  }
}

/** What an `InputReference` is beneath: where in the graph's input, or in an item of a collection, its value is. */
export class PlaceReference {
  readonly of: "input" | "item";
  readonly path: readonly string[];

  constructor(of: "input" | "item", path: readonly string[]) {
    this.of = of;
    this.path = path;
  }
}

const places = new WeakMap<object, PlaceReference>();

/** A reference whose every field is a reference. Which fields there will be is not known yet, so they cannot be listed. */
export function referTo(of: "input" | "item", path: readonly string[] = []): object {
  const reference: object = new Proxy(Object.freeze({}), {
    get: (_, field) => (typeof field === "string" ? referTo(of, [...path, field]) : undefined),
    ownKeys: () => {
      throw new PawlError(
        "INVALID_OPTION",
        "A reference cannot be spread: pass it whole, or name its fields.",
      );
    },
  });
  places.set(reference, new PlaceReference(of, path));
  return reference;
}

export type Reference = GraphNode | SettledReference | PlaceReference;

/** What this stands for; null: it is a value itself. */
export function referenceOf(value: unknown): Reference | null {
  if (typeof value !== "object" || value === null) return null;
  if (value instanceof GraphNode || value instanceof SettledReference) return value;
  return places.get(value) ?? null;
}
