import { requestKey, type Family } from "../core/request-key.ts";
import type { Branch, RequestTerms } from "./request.ts";

/** A part of the code whose requests are named and numbered apart from all others. */
export interface Scope {
  /** The key of the next request of this family and name: numbered in the order asked. */
  readonly nextKey: (family: Family, name: string) => string;
  /** Registers a request at once; the promise settles when its answer is delivered. */
  readonly ask: (terms: RequestTerms) => Promise<unknown>;
  /** A scope in this one. The second of a name is another than the first. */
  readonly inner: (name: string, branch?: Branch | null) => Scope;
  /** The branch of a race that its code is in. */
  readonly branch: Branch | null;
}

export type Ask = (terms: RequestTerms, branch: Branch | null) => Promise<unknown>;

/** @param path how the keys of its requests begin; empty for the whole run */
export function createScope(path: string, ask: Ask, branch: Branch | null = null): Scope {
  const counts = new Map<string, number>();

  const nextKey = (family: Family | "scope", name: string): string => {
    const id = `${family} ${name}`;
    const occurrence = (counts.get(id) ?? 0) + 1;
    counts.set(id, occurrence);
    return requestKey(path, name, occurrence);
  };

  return {
    nextKey,
    ask: (terms) => ask(terms, branch),
    inner: (name, within = branch) => createScope(nextKey("scope", name), ask, within),
    branch,
  };
}
