import type { Contestant, Product } from "./contestant.ts";
import type { Ground } from "./ground.ts";

/** One figure of one contestant. */
export interface Figure {
  readonly value: number;
  /** CPU time for one run, or one start, in Node and in Postgres. */
  readonly nodeMs: number | null;
  readonly postgresMs: number | null;
}

export interface Workload {
  readonly name: string;
  /** `of 1`: what is left of a rate. */
  readonly unit: "1/s" | "ms" | "of 1" | "MB";
  /** Whether this contestant can do it. */
  readonly isFor: (product: Product) => boolean;
  measure(product: Product, ground: Ground): Promise<Figure>;
}

export interface Size {
  /** About how long a throughput is measured. */
  readonly seconds: number;
  readonly drained: number;
  readonly latencies: number;
  readonly timers: number;
  /** How many runs of others lie in the tables. */
  readonly backlog: number;
  /** How long a snapshot is held open. */
  readonly heldMs: number;
}

export const has =
  (...names: Product["offers"]) =>
  ({ offers }: Product): boolean =>
    names.every((name) => offers.includes(name));

/** Lets a contestant work in a database of its own. */
export async function inDatabase<Answer>(
  ground: Ground,
  product: Product,
  processes: number,
  act: (first: Contestant, others: readonly Contestant[]) => Promise<Answer>,
): Promise<Answer> {
  const database = await ground.openDatabase();
  const contestants: Contestant[] = [];
  try {
    const first = await product.start(database.url);
    contestants.push(first);
    await first.call("migrate");
    for (let n = 1; n < processes; n++) contestants.push(await product.start(database.url));
    return await act(first, contestants.slice(1));
  } finally {
    for (const contestant of contestants) await contestant.close();
    await database.drop();
  }
}
