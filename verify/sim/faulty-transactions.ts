import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { Transaction } from "../../packages/pawl/src/core/transaction.ts";
import type { Completions, Transactor } from "../../packages/pawl/src/core/transactor.ts";
import type {
  HolderTransactions,
  OwnTransaction,
} from "../../packages/pawl/src/store/holder-transactions.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { Database } from "../gen/program.ts";
import type { CallHarm } from "../points/script.ts";
import { suffer, type StoreLink } from "./faulty-store.ts";
import { callFates } from "./plan.ts";
import { brokenConnection, type SimDatabase, type SimTransaction } from "./sim-database.ts";

/** What may happen to a COMMIT. */
export const commitFates = [...callFates, "in conflict"] as const;
type Fate = (typeof commitFates)[number] | "fine";

export interface FaultyTransactions {
  readonly holder: HolderTransactions;
  readonly transactorOf: (database: Exclude<Database, "own">) => Transactor<Transaction>;
}

type Handle = OwnTransaction & Transaction;

const healedLatencyMs = 1;

/** The databases as one process reaches them: its connection may break at every statement, and COMMIT is not a boolean. */
export function createFaultyTransactions(
  base: SimDatabase,
  store: Store,
  link: StoreLink,
): FaultyTransactions {
  const { world, process, rng, plan, healAtMs, landed } = link;
  const open = new WeakMap<Transaction, SimTransaction>();

  const draw = (isCommit: boolean): Fate => {
    if (world.nowMs >= healAtMs) return "fine";
    let left = rng.next();
    for (const fate of callFates) {
      if (left < plan.calls[fate]) return fate;
      left -= plan.calls[fate];
    }
    return isCommit && plan.calls.dropped > 0 && rng.chance(0.1) ? "in conflict" : "fine";
  };

  const drawLatencyMs = (): number =>
    rng.between(0.05, world.nowMs < healAtMs ? plan.latencyMs : healedLatencyMs);
  const drawLongMs = (): number => Math.max(0, Math.min(rng.between(0, plan.longMs), healAtMs - world.nowMs));

  /** Sends a statement, and answers what the database says to it. */
  const send = <T>(fate: Fate, apply: () => T | Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      process.pass("call", () => {
        const thereMs = drawLatencyMs() + (fate === "delayed" ? drawLongMs() : 0);
        const backMs = drawLatencyMs() + (fate === "heldUp" ? drawLongMs() : 0);
        const answer = (ms: number, act: () => void): void => {
          world.convey(ms, () => process.pass("answer", act));
        };
        const lose = (): void => reject(lostConnection());
        if (fate === "dropped" || fate === "overtaken") answer(thereMs + backMs, lose);
        if (fate === "dropped") return;
        world.convey(fate === "overtaken" ? thereMs + backMs + drawLongMs() : thereMs, () => {
          Promise.resolve()
            .then(apply)
            .then(
              (value) => answer(backMs, () => (fate === "unanswered" ? lose() : resolve(value))),
              (error: unknown) => answer(backMs, () => reject(error)),
            );
        });
      });
    });

  /** What the script says becomes of it, if it says anything. */
  const scriptedAt = (name: string): CallHarm | null => (world.nowMs < healAtMs ? link.scripted(name) : null);

  const sendHarmed = <T>(harm: CallHarm, apply: () => T | Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      suffer(
        link,
        harm,
        async () => apply(),
        (fate, changed) => void send(fate, changed).then(resolve, reject),
      );
    });

  /** The fence may come late, more often than others do: that is what it is for. */
  const drawAtFence = (): Fate =>
    world.nowMs < healAtMs && plan.calls.delayed > 0 && rng.chance(0.3) ? "delayed" : draw(false);

  /** A connection that breaks in the middle takes its transaction along. */
  const state = <T>(
    name: string,
    handle: Transaction,
    apply: (tx: SimTransaction) => T,
    drawFate = (): Fate => draw(false),
  ): Promise<T> => {
    const applied = (): T => {
      const tx = open.get(handle);
      if (tx === undefined) throw brokenConnection();
      return apply(tx);
    };
    const harm = scriptedAt(name);
    if (harm !== null && harm !== "dropped" && harm !== "unanswered") return sendHarmed(harm, applied);
    const fate = harm ?? drawFate();
    if (fate === "dropped" || fate === "unanswered" || fate === "overtaken") {
      landed("connection lost in a transaction");
      return send("dropped", () => {
        throw brokenConnection();
      });
    }
    return send(fate, applied);
  };

  const commit = (tx: SimTransaction): Promise<void> => {
    const harm = scriptedAt("COMMIT");
    if (harm !== null) return sendHarmed(harm, () => tx.commit());
    const fate = draw(true);
    if (fate !== "fine") landed(`COMMIT ${fate}`);
    return send(fate, () => {
      if (fate === "in conflict") throw Object.assign(new Error("could not serialize access"), conflict);
      return tx.commit();
    });
  };

  const begin =
    (database: Database): Transactor<Handle>["begin"] =>
    async (work) => {
      const tx = base.begin(process.name, database, store);
      const handle = handleOf(tx);
      open.set(handle, tx);
      // A process that is paused begins nothing, and one whose work throws has nothing to commit.
      const result = await work(handle, handle).finally(() => open.delete(handle));
      await commit(tx);
      return result;
    };

  const completions: Completions = {
    takeOver: (handle, id) => state("transaction takeOver", handle, (tx) => tx.takeOver(id)),
    complete: (handle, id, isFirst, result) =>
      state("transaction complete", handle, (tx) => tx.complete(id, isFirst, result), drawAtFence),
  };

  const transactorOf = (database: Database): Transactor<Handle> => ({
    isForeign: database === "foreign",
    checksCommit: database === "own",
    completions,
    begin: begin(database),
  });

  return {
    holder: {
      own: transactorOf("own"),
      open: (handle, token, lease) => state("transaction open", handle, (tx) => tx.open(token, lease)),
      record: (handle, token, lease, facts) =>
        state("transaction record", handle, (tx) => tx.record(token, lease, facts), drawAtFence),
    },
    transactorOf,
  };
}

const conflict = { code: "40001" };

function lostConnection(): PawlError {
  return new PawlError("STORE_UNAVAILABLE", "The connection was lost.");
}

/** The only statement that programs make: it writes down an effect, which costs no time of its own. */
function handleOf(tx: SimTransaction): Handle {
  return {
    async query<Row>(_: string, values: readonly unknown[] = []) {
      const [run, step, key, token] = values as readonly [string, string, string, string];
      tx.insert({ run, step, key, token });
      return { rows: [] as Row[], rowCount: 1 };
    },
  };
}
