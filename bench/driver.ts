/**
 * A product as the bench drives it, in a process of its own: Pawl, or one of its peers. Handlers do nothing. What a product
 * does not offer it leaves out.
 */
export interface Driver {
  /** Name and exact version. */
  readonly product: string;
  /** The settings it runs with, beyond its defaults, and where its documentation recommends them. */
  readonly settings: string;
  /** Creates its tables in the empty database. */
  migrate(): Promise<void>;
  /** Starts this many plain jobs, a call each, from so many callers at once. Nothing works on them yet. */
  startSingly?(count: number, callers: number): Promise<void>;
  /** The same in as few calls as it offers for that. */
  startInBulk?(count: number): Promise<void>;
  /** Begins to work, on everything that the bench starts. */
  work?(): Promise<void>;
  /** Lets nobody work, starts so many plain jobs, works until all are done, and answers how many ms that took. */
  drain?(count: number): Promise<number>;
  /** Whether any plain job is not done yet, by what is in the database. */
  hasPlainJobs?(): Promise<boolean>;
  /** Workflows of five steps, one after the other: so many in all, so many at once, each awaited. After `work`. */
  fiveSteps?(count: number, inFlight: number): Promise<void>;
  /** Plain jobs: so many in all, so many at once, each awaited. After `work`. */
  plainRuns?(count: number, inFlight: number): Promise<void>;
  /** Plain jobs, one after the other, with a pause between them that lets everything come to rest. After `work`. */
  latencies?(count: number): Promise<Latencies>;
  /** One workflow that does so many steps at once. After `work`. */
  parallelSteps?(count: number): Promise<void>;
  /** One workflow that starts so many children at once and awaits them all. After `work`. */
  children?(count: number): Promise<void>;
  /** One workflow of so many steps, one after the other. After `work`. The limit: as many durable inserts. */
  sequentialSteps?(count: number): Promise<void>;
  /**
   * One workflow of more steps than that, one after the other, by a worker with such a lease: resolves when so many are recorded
   * and the next has begun, which does not end.
   */
  hang?(steps: number, leaseMs: number): Promise<void>;
  /** Begins to work where another process was killed in `hang`; answers how many ms later the code of a step begins. */
  resume?(): Promise<number>;
  /** So many workflows, until each of them is parked and waits for a signal, more than a worker keeps in memory. After `work`. */
  park?(count: number): Promise<void>;
  /** Signals all of them at once, until the code of each has gone on. */
  wake?(): Promise<void>;
  /** So many workflows, until each of them sleeps; they are due within one second, the first in so many ms. After `work`. */
  setTimers?(count: number): Promise<number>;
  /** How many ms after the first timer was due the last workflow's code has gone on. */
  awaitTimers?(): Promise<number>;
  /**
   * Plain jobs on another queue, by a worker of their own in this process: one after the other, each awaited, with a short rest
   * between them. Answers how many ms each took.
   */
  elsewhere?(count: number): Promise<readonly number[]>;
  /** Workflows of five steps, so many started a second for so long, whether or not those before are done. After `work`. */
  pace?(perSecond: number, seconds: number): Promise<readonly number[]>;
  /** Does nothing. */
  rest?(): Promise<void>;
  /** Ends its connections and whatever works. */
  close(): Promise<void>;
}

/** In ms, from the call of start; one for each job. */
export interface Latencies {
  /** …until the handler begins. */
  readonly begins: readonly number[];
  /** …until the caller has the result; empty for a queue that has none. */
  readonly results: readonly number[];
  /** …of a start that does not go through a queue, where the product has such a thing. */
  readonly direct: readonly number[];
  /** Not of a job, and for the limit alone: from notify on one connection until it is heard on another. */
  readonly notices?: readonly number[];
}

/** Concurrency is the product's own best; `processes` that work share it. */
export type OpenDriver = (url: string) => Driver;
