import { requestKey, type Family } from "../core/request-key.ts";
import type { Branch, RequestTerms } from "./request.ts";

export interface Asking {
  /** Registers a request at once; the promise settles when its answer is delivered. */
  ask(terms: RequestTerms, branch: Branch | null): Promise<unknown>;
}

/** A part of the code whose requests are named and numbered apart from all others. */
export class Scope {
  /** The branch of a race that its code is in. */
  readonly branch: Branch | null;
  /** Its code handles an update. */
  readonly isOfHandler: boolean;
  readonly #path: string;
  readonly #asking: Asking;
  #counts: Map<string, number> | null = null;

  /** @param path how the keys of its requests begin; empty for the whole run */
  constructor(path: string, asking: Asking, branch: Branch | null = null, isOfHandler = false) {
    this.branch = branch;
    this.isOfHandler = isOfHandler;
    this.#path = path;
    this.#asking = asking;
  }

  /** The key of the next request of this family and name: numbered in the order asked. */
  nextKey(family: Family | "scope", name: string): string {
    this.#counts ??= new Map();
    const id = `${family} ${name}`;
    const occurrence = (this.#counts.get(id) ?? 0) + 1;
    this.#counts.set(id, occurrence);
    return requestKey(this.#path, name, occurrence);
  }

  ask(terms: RequestTerms): Promise<unknown> {
    return this.#asking.ask(terms, this.branch);
  }

  /** A scope in this one. The second of a name is another than the first. */
  inner(name: string, within: Branch | null = this.branch): Scope {
    return new Scope(this.nextKey("scope", name), this.#asking, within, this.isOfHandler);
  }

  /** The same for the handler of an update. */
  ofHandler(name: string): Scope {
    return new Scope(this.nextKey("scope", name), this.#asking, this.branch, true);
  }
}
