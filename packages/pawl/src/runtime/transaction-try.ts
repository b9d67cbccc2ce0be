import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import type { PayloadPlace } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { Random } from "../core/random.ts";
import type { Timers } from "../core/timers.ts";
import type { HolderTransactions } from "../store/holder-transactions.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Fact } from "./gathered.ts";
import type { Holding } from "./holding.ts";
import type { TransactionTerms } from "./transaction-options.ts";

export interface TransactionsParts {
  readonly claimed: ClaimedRun;
  readonly holding: Holding;
  /** Tells what a run does from what it did before it was started anew: 0 until then. */
  readonly life: number;
  readonly transactions?: HolderTransactions | undefined;
  readonly payloads: Payloads;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly log: Log;
}

/** One try at a transaction. */
export interface Try {
  readonly key: string;
  readonly terms: TransactionTerms;
  readonly place: PayloadPlace;
  /** All of the fact but its data. */
  readonly fact: Omit<Fact, "data">;
  /** For how long the transaction has been asked for. */
  readonly tookMs: () => number;
  /** Its record is about to come into the history, before any other answer; or has turned back. */
  readonly isAhead: (is: boolean) => void;
  /** Calls the function. */
  readonly call: (tx: unknown) => Promise<unknown>;
}
