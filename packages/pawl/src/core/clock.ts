/** This process's clock, in ms. It decides only when to look; the store's clock decides everything else. */
export interface Clock {
  now(): number;
}
