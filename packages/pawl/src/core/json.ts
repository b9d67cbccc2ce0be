/** A value in transit: JSON text, and notes on what JSON alone cannot say of it. The store keeps both as they are. */
export interface Payload {
  readonly json: string;
  /** JSON text of type notes (dates, maps, bigints), or null where plain JSON says it all. */
  readonly notes: string | null;
}
