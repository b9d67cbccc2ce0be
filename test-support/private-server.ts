import { startPostgres, type EmbeddedPostgres } from "@pawl/embedded";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

/** A Postgres for one test, whose commits last, and which may be ended without warning. */
export class PrivateServer implements AsyncDisposable {
  readonly #server: EmbeddedPostgres;

  private constructor(server: EmbeddedPostgres) {
    this.#server = server;
  }

  static async start(settings: Readonly<Record<string, string>> = {}): Promise<PrivateServer> {
    return new PrivateServer(await startPostgres({ settings: { max_connections: "200", ...settings } }));
  }

  /** 0 while it is down. */
  get pid(): number {
    try {
      return Number(readFileSync(join(this.#server.dir, "data", "postmaster.pid"), "utf8").split("\n")[0]);
    } catch {
      return 0;
    }
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

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.stop();
  }
}
