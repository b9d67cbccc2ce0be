import { startPostgres, type EmbeddedPostgres, type StartPostgresOptions } from "@pawl/embedded";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

/** A Postgres for one test, whose commits last, and which may be ended without warning. */
export class PrivateServer implements AsyncDisposable {
  #server: EmbeddedPostgres;
  readonly #options: StartPostgresOptions;

  private constructor(server: EmbeddedPostgres, options: StartPostgresOptions) {
    this.#server = server;
    this.#options = options;
  }

  /** @param dir where it keeps its files, which end with it. Default: a temporary folder. */
  static async start(settings: Readonly<Record<string, string>> = {}, dir?: string): Promise<PrivateServer> {
    const options = {
      settings: { max_connections: "200", ...settings },
      ...(dir !== undefined && { dir }),
    };
    return new PrivateServer(await startPostgres(options), options);
  }

  /** 0 while it is down. */
  get pid(): number {
    try {
      return Number(readFileSync(join(this.dataFolder, "postmaster.pid"), "utf8").split("\n")[0]);
    } catch {
      return 0;
    }
  }

  /** Where its data is. */
  get dataFolder(): string {
    return join(this.#server.dir, "data");
  }

  /** Stops it, lets something be done to its data, and starts it again at the same place. Needs a folder that was named. */
  async whileDown(act: () => Promise<void>): Promise<void> {
    const { port } = this.#server;
    await this.#server.stop();
    await act();
    this.#server = await startPostgres({ ...this.#options, port, strictPort: true });
  }

  createDatabase(name: string): Promise<string> {
    return this.#server.createDatabase(name);
  }

  /** Ends it as `pg_ctl stop -m` does; it comes back by itself, and recovers. Resolves when it answers. */
  async restart(mode: "immediate" | "fast" = "immediate"): Promise<void> {
    const { pid } = this;
    process.kill(pid, mode === "immediate" ? "SIGQUIT" : "SIGINT");
    while (this.pid === pid || !(await this.#answers())) await pause(20);
  }

  async #answers(): Promise<boolean> {
    const client = new pg.Client({ connectionString: this.#server.url, connectionTimeoutMillis: 1_000 });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.end();
      return true;
    } catch {
      return false;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
    const { dir } = this.#options;
    if (dir !== undefined) await rm(dir, { recursive: true, force: true });
  }
}
