import { type Pawl, PawlError } from "../../packages/pawl/src/index.ts";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { Report } from "../hist/verdict.ts";
import type { Rng } from "../sim/rng.ts";
import { job } from "./job.ts";

const mostAtOnce = 140;

/** Jobs that are started by the dozen, of which now and then one is told something before it is claimed. */
export class Crowd {
  readonly #pawl: Pawl;
  readonly #rng: Rng;
  /** What callers were told is there, and what they may have told it to end as. */
  readonly #acknowledged = new Map<string, "completed" | "cancelled">();
  #going: Promise<void> = Promise.resolve();

  constructor(pawl: Pawl, rng: Rng) {
    this.#pawl = pawl;
    this.#rng = rng;
  }

  /** One call after the other. */
  come(): void {
    const count = 2 + this.#rng.below(mostAtOnce - 2);
    const meddled = this.#rng.chance(0.5) ? this.#rng.below(count) : null;
    const isToEnd = this.#rng.chance(0.5);
    this.#going = this.#going.then(async () => {
      try {
        const items = Array.from({ length: count }, (_, n) => ({ input: { n } }));
        const runs = await this.#pawl.startMany(job, items);
        for (const { id } of runs) this.#acknowledged.set(id, "completed");
        const chosen = meddled === null ? undefined : runs[meddled];
        if (chosen === undefined) return;
        if (isToEnd) {
          this.#acknowledged.set(chosen.id, "cancelled");
          await this.#pawl.cancel(chosen.id);
        } else {
          await this.#pawl.pause(chosen.id);
          await this.#pawl.resume(chosen.id);
        }
      } catch (error) {
        if (!(error instanceof PawlError)) throw error;
      }
    });
  }

  /** Resolves when it has been answered, whatever it was told. Wakes whom a lost answer has left paused. */
  async settle(): Promise<void> {
    await this.#going;
    await this.#pawl.resumeAll({ workflow: job.name });
  }

  get size(): number {
    return this.#acknowledged.size;
  }

  /** I1, I17: who was acknowledged is there, and has ended as it should. */
  check({ runs }: StoreSnapshot, report: Report): void {
    const statuses = new Map(runs.map(({ id, status }) => [id, status]));
    for (const [id, expected] of this.#acknowledged) {
      const status = statuses.get(id);
      if (status === undefined) report("I1", "a job was acknowledged and is not there", id);
      else if (status !== "completed" && status !== expected)
        report("I17", "a job has not completed", { id, status, expected });
    }
  }
}
