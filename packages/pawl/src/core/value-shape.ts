/** How many objects may lie in each other. */
export const deepest = 100;

/** Most objects are, and it takes one look. */
export function isPlainHere(value: object): boolean {
  return Object.getPrototypeOf(value) === Object.prototype;
}

/** Of any realm: its prototype is null, or the end of the chain. */
export function hasPlainPrototype(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Of any realm, but not of a class that extends it. */
export function isOrdinaryArray(value: object): boolean {
  return Object.getPrototypeOf(value) === Array.prototype || countPrototypes(value) === 2;
}

/** What a value is where it is more than plain JSON. Names are stored: add, never rename. */
export type ObjectKind = "Date" | "Map" | "Set" | "Uint8Array" | "Buffer" | "Error";

/**
 * Tells by what it does, not by its class, so that it holds for objects of another realm. Null: none that can be written.
 * Something that only pretends to be one of these throws when it is read.
 */
export function kindOfObject(value: object): ObjectKind | null {
  if (value instanceof Error) return "Error";
  switch (Object.prototype.toString.call(value).slice("[object ".length, -1)) {
    case "Error":
      return "Error";
    case "Date":
      return countPrototypes(value) === 2 ? "Date" : null;
    case "Map":
      return countPrototypes(value) === 2 ? "Map" : null;
    case "Set":
      return countPrototypes(value) === 2 ? "Set" : null;
    case "Uint8Array":
      if (Object.getPrototypeOf(value) === Buffer.prototype) return "Buffer";
      return countPrototypes(value) === 3 ? "Uint8Array" : null;
    default:
      return null;
  }
}

function countPrototypes(value: object): number {
  let count = 0;
  for (let next: unknown = Object.getPrototypeOf(value); next !== null; next = Object.getPrototypeOf(next))
    count += 1;
  return count;
}
