/**
 * Resolves when everything that can go on has done so: what waits for promises, and for I/O that has already come in. With
 * `promises`, which costs a fraction of that, only what waits for promises.
 */
export type Settle = (reach?: "promises") => Promise<void>;
