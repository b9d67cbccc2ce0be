import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

/** Measures how long notifications take between two connections, on this machine as busy as it is. */
export class NotificationTrips implements AsyncDisposable {
  readonly #client: pg.Client;
  readonly #trips: number[] = [];
  #isOver = false;
  #measuring: Promise<void> = Promise.resolve();

  constructor(url: string) {
    this.#client = new pg.Client({ connectionString: url });
  }

  async start(pool: pg.Pool): Promise<void> {
    this.#client.on("notification", ({ payload }) => this.#trips.push(performance.now() - Number(payload)));
    await this.#client.connect();
    await this.#client.query("listen trip");
    this.#measuring = this.#measure(pool);
  }

  async #measure(pool: pg.Pool): Promise<void> {
    while (!this.#isOver) {
      await pool.query("select pg_notify('trip', $1)", [String(performance.now())]);
      await pause(20);
    }
  }

  /** The measured times, in ms. */
  async stop(): Promise<readonly number[]> {
    this.#isOver = true;
    await this.#measuring;
    return this.#trips;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#client.end();
  }
}
