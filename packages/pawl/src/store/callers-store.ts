import type { Store } from "./store.ts";

/**
 * What a store can do inside a transaction of its caller's: only insert. Nobody else sees it before the caller commits,
 * and runs are woken after that. Nothing is tried again: an error has ended the caller's transaction.
 */
export type CallersStore = Pick<Store, "now" | "createRuns" | "tell" | "signalOrStart">;
