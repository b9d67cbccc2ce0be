/** How the place where runs live is set and doing. */
export interface StoreReport {
  /** The store's clock. */
  readonly now: number;
  /** The schema's version, 0 where there is none, and the one that this library needs. */
  readonly version: number;
  readonly wantedVersion: number;
  /** Whether this library can work with it: a newer one may say that it can. */
  readonly isFit: boolean;
  /** Settings of the server that keep what was acknowledged: those that are turned off. */
  readonly unsafeSettings: readonly string[];
  /** Null: could not be counted, since the schema is another. */
  readonly aliveWorkers: number | null;
  /** A transaction pooler sits in between. */
  readonly isPooled: boolean;
  /** `off` until it was tried once; `pooled`: dead, since a transaction pooler is in between. */
  readonly listening: "off" | "live" | "dead" | "pooled";
}
