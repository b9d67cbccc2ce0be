import { setTimeout as pause } from "node:timers/promises";
import { PrivateServer } from "pawl-test-support/private-server";
import pg from "pg";
import { createPawl, type Pawl, type PawlOptions } from "../../packages/pawl/src/index.ts";
import { Hand, type HandSettings } from "./hand.ts";
import { ledgerSql } from "./ledger.ts";

/** What the processes of a scene take for granted unless it says otherwise. */
type HandOptions = Partial<Omit<HandSettings, "worker">> & Partial<HandSettings["worker"]>;

/** A database with Pawl's schema and a ledger, a client in this process, and the processes that work on it. */
export class Ground implements AsyncDisposable {
  readonly server: PrivateServer;
  readonly url: string;
  /** Of this process, straight to the server. */
  readonly pool: pg.Pool;
  readonly pawl: Pawl;
  readonly #owned: AsyncDisposable[] = [];
  #isOver = false;

  private constructor(server: PrivateServer, url: string) {
    this.server = server;
    this.url = url;
    this.pool = new pg.Pool({ connectionString: url, max: 8 });
    this.pool.on("error", () => {});
    this.pawl = createPawl({ url });
  }

  /** In a temporary folder, unless one is named. */
  static async open(settings: Readonly<Record<string, string>> = {}, dir?: string): Promise<Ground> {
    const server = await PrivateServer.start(settings, dir);
    const ground = new Ground(server, await server.createDatabase("ground"));
    await ground.pawl.migrate();
    await ground.pool.query(ledgerSql);
    return ground;
  }

  /** Another client in this process. */
  connect(options: PawlOptions): Pawl {
    return this.own(createPawl(options));
  }

  /** A worker in a process of its own. */
  async hire(options: HandOptions = {}): Promise<Hand> {
    const { url = this.url, ledgerUrl = this.url, build = "first", nodeOptions = [], ...worker } = options;
    const settings: HandSettings = {
      url,
      ledgerUrl,
      build,
      nodeOptions,
      worker: { lease: 1_000, concurrency: 50, pollInterval: 200, ...worker },
    };
    const hand = this.own(new Hand(settings));
    await hand.works();
    return hand;
  }

  own<Resource extends AsyncDisposable>(resource: Resource): Resource {
    // Somebody was just being hired.
    if (this.#isOver) void resource[Symbol.asyncDispose]();
    this.#owned.push(resource);
    return resource;
  }

  /** Asks until the answer is as wanted. @throws when that takes too long */
  async until(what: string, isSo: () => Promise<boolean>, withinMs = 60_000): Promise<number> {
    const startedAt = performance.now();
    while (!(await isSo())) {
      if (performance.now() - startedAt > withinMs)
        throw new Error(`Not within ${withinMs} ms: ${what}.\n${await this.#whereEverythingStands()}`);
      await pause(50);
    }
    return Math.round(performance.now() - startedAt);
  }

  /** The first column of the first row. */
  async value<Value = number>(sql: string, values: readonly unknown[] = []): Promise<Value> {
    const { rows } = await this.pool.query({ text: sql, values: [...values], rowMode: "array" });
    return (rows as unknown as readonly (readonly unknown[])[])[0]?.[0] as Value;
  }

  countRuns(where: string): Promise<number> {
    return this.value(`select count(*)::int from pawl.runs where ${where}`);
  }

  /** Waits until every run there is has ended. Answers how long that took. */
  drain(withinMs = 60_000): Promise<number> {
    return this.until(
      "every run has ended",
      async () => (await this.value("select count(*)::int from pawl.live_runs")) === 0,
      withinMs,
    );
  }

  async #whereEverythingStands(): Promise<string> {
    const queries = [
      "select workflow, status, count(*)::int from pawl.runs group by 1, 2",
      `select pid, state, wait_event_type, wait_event, left(query, 100) as query
         from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      `select kind, name, data from pawl.event where kind in ('blocked', 'attempt_failed', 'attempt_crashed')
        order by at desc limit 5`,
    ];
    const answers = await Promise.all(
      queries.map((sql) =>
        this.pool.query(sql).then(
          ({ rows }) => rows.map((row) => JSON.stringify(row)),
          (error: unknown) => [String(error)],
        ),
      ),
    );
    return answers.flat().join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    for (const resource of this.#owned.toReversed()) await resource[Symbol.asyncDispose]();
    await this.pawl.close({ timeout: 0 });
    await this.pool.end();
    await this.server[Symbol.asyncDispose]();
  }
}
