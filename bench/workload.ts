import type { Contestant, Product } from "./contestant.ts";
import type { Ground } from "./ground.ts";

/** One figure of one contestant. */
export interface Figure {
  readonly value: number;
  /** CPU time for one run, or one start, in Node and in Postgres. */
  readonly nodeMs: number | null;
  readonly postgresMs: number | null;
  /** What else was measured with it, by the heading of its column. Ratios are made of `value` alone. */
  readonly more?: Readonly<Record<string, number>>;
}

/** `of 1`: what is left of a rate. `times`: what a time has become. */
export type Unit = "1/s" | "ms" | "of 1" | "times" | "MB" | "calls" | "bytes";

/** What a workload tells of a contestant. */
export interface Reading {
  readonly name: string;
  readonly unit: Unit;
  readonly figure: Figure;
}

export interface Workload {
  /** Begins as its readings' names do, where it has more than one. */
  readonly name: string;
  /** Whether this contestant can do it. */
  readonly isFor: (product: Product) => boolean;
  measure(product: Product, ground: Ground): Promise<readonly Reading[]>;
}

export interface Size {
  /** About how long a throughput is measured, and at least how long a contestant is warmed up for that. */
  readonly seconds: number;
  readonly drained: number;
  readonly latencies: number;
  /** How many steps a run has behind it when its worker is killed. */
  readonly resumed: number;
  readonly timers: number;
  /** How many runs of others lie in the tables. */
  readonly backlog: number;
  /** How many runs of workflows that nobody knows stand before the others. */
  readonly unknown: number;
  /** How long a snapshot is held open. */
  readonly heldMs: number;
}

/** A workload that tells one thing. */
export function oneReading(of: {
  readonly name: string;
  readonly unit: Unit;
  readonly isFor: Workload["isFor"];
  measure(product: Product, ground: Ground): Promise<Figure>;
}): Workload {
  const { name, unit, isFor } = of;
  return {
    name,
    isFor,
    measure: async (product, ground) => [{ name, unit, figure: await of.measure(product, ground) }],
  };
}

export const has =
  (...names: Product["offers"]) =>
  ({ offers }: Product): boolean =>
    names.every((name) => offers.includes(name));

/** A database, and the processes of one contestant in it. */
export interface Stage {
  readonly url: string;
  readonly first: Contestant;
  readonly startAnother: () => Promise<Contestant>;
}

/** Lets a contestant work in a database of its own. */
export async function inDatabase<Answer>(
  ground: Ground,
  product: Product,
  act: (stage: Stage) => Promise<Answer>,
): Promise<Answer> {
  const database = await ground.openDatabase();
  const { url } = database;
  const contestants: Contestant[] = [];
  const startAnother = async (): Promise<Contestant> => {
    const contestant = await product.start(url);
    contestants.push(contestant);
    return contestant;
  };
  try {
    const first = await startAnother();
    await first.call("migrate");
    return await act({ url, first, startAnother });
  } finally {
    for (const contestant of contestants) await contestant.close();
    await database.drop();
  }
}

/** What the act answers, and the CPU time that Postgres took for each of so many. */
export async function withPostgresMs<Answer>(
  ground: Ground,
  count: number,
  act: () => Promise<Answer>,
): Promise<readonly [Answer, number | null]> {
  const before = ground.cpuMs();
  const answer = await act();
  const after = ground.cpuMs();
  return [answer, before === null || after === null ? null : (after - before) / count];
}
