import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { ref, type Pawl } from "../../packages/pawl/src/index.ts";
import type { ProgramWorkflow } from "../gen/program-workflow.ts";
import type { Rng } from "../sim/rng.ts";

const program1 = ref<ProgramWorkflow>("program1", 1);

/** Users who start a run in a transaction of their own, and leave it open for a while. */
export class UserTransactions {
  readonly #url: string;
  readonly #pawl: Pawl;
  /** By the key of the run: whether it was committed; null if nobody knows. */
  readonly outcomes = new Map<string, boolean | null>();

  constructor(url: string, pawl: Pawl) {
    this.#url = url;
    this.#pawl = pawl;
  }

  /** Answers whether it was left open for as long as was meant. */
  async use(rng: Rng, holdMs: number): Promise<boolean> {
    const isToCommit = rng.chance(0.6);
    const key = `tx:${this.outcomes.size}`;
    this.outcomes.set(key, false);
    const client = new pg.Client({ connectionString: this.#url, connectionTimeoutMillis: 1_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("begin isolation level repeatable read");
      const path = `t${this.outcomes.size}`;
      const op = { kind: "sleep", path: `${path}.0`, ms: 1 } as const;
      await this.#pawl.start(program1, { path, attempts: 1, ops: [op], next: null }, { key, tx: client });
      await pause(holdMs);
      this.outcomes.set(key, isToCommit ? null : false);
      await client.query(isToCommit ? "commit" : "rollback");
      this.outcomes.set(key, isToCommit);
      return true;
    } catch {
      return false;
    } finally {
      client.end().catch(() => {});
    }
  }
}
