import type { RunHandle } from "../../packages/pawl/src/index.ts";
import type { Report } from "../hist/verdict.ts";
import type { Ground } from "../scenes/ground.ts";
import { order } from "../scenes/workflows.ts";

type OrderRun = RunHandle<readonly string[]>;

/** Runs of one workflow that are under way while its code is replaced, each told to go on when its time comes. */
export class Orders {
  readonly runs: OrderRun[] = [];
  readonly #ground: Ground;
  /** Of each run, which signals it has got. */
  readonly #told = new Map<OrderRun, number>();

  constructor(ground: Ground) {
    this.#ground = ground;
  }

  async start(count: number): Promise<readonly OrderRun[]> {
    const items = Array.from({ length: count }, () => ({ input: undefined }));
    const runs = await this.#ground.pawl.startMany(order, items);
    this.runs.push(...runs);
    return runs;
  }

  /** Sends each of these its next signal: pay, then ship. */
  async tell(runs: readonly OrderRun[]): Promise<void> {
    await Promise.all(
      runs.map(async (run) => {
        const times = this.#told.get(run) ?? 0;
        if (times === 2) return;
        this.#told.set(run, times + 1);
        await run.signal(times === 0 ? "pay" : "ship");
      }),
    );
  }

  async tellAll(): Promise<void> {
    await this.tell(this.runs);
    await this.tell(this.runs);
  }

  /** Those that have not got both of their signals. */
  get open(): readonly OrderRun[] {
    return this.runs.filter((run) => (this.#told.get(run) ?? 0) < 2);
  }

  /** How many have recorded this step. */
  countDone(step: string): Promise<number> {
    return this.#ground.value(
      "select count(*)::int from pawl.event where kind = 'step_completed' and name = $1",
      [step],
    );
  }

  countBlocked(): Promise<number> {
    return this.#ground.countRuns("status = 'blocked'");
  }

  /** Each took one side, the same in its history, in its output and in the world; as an earlier release began, so it ended. */
  async check(report: Report, oldSide: readonly OrderRun[]): Promise<void> {
    const { rows } = await this.#ground.pool.query<{
      id: string;
      output: readonly string[];
      is_patched: boolean;
      bought: readonly string[];
    }>(
      `select r.id, r.output,
              exists (select 1 from pawl.event e where e.run_id = r.id and e.kind = 'patched') as is_patched,
              array(select step from public.purchase p where p.run_id = r.id) as bought
         from pawl.runs r where r.workflow = 'order'`,
    );
    if (rows.length !== this.runs.length)
      report("I1", `${this.runs.length} runs were started, and there are ${rows.length}`);
    const old = new Set<string>(oldSide.map(({ id }) => id));
    const isWrong = rows.filter(({ id, output, is_patched, bought }) => {
      const charge = is_patched ? "charge-euro" : "charge";
      const isRight =
        JSON.stringify(output) === JSON.stringify(["reserve", charge, "ship"]) && bought.join() === charge;
      return !isRight || (old.has(id) && is_patched);
    });
    if (isWrong.length > 0)
      report("I14", `a run changed sides (${isWrong.length} of ${rows.length})`, ...isWrong.slice(0, 5));
  }
}
