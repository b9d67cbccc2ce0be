import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

/** What was left behind on a connection that others use next. */
export interface Leak {
  readonly what: string;
  readonly rows: readonly unknown[];
}

/** Settings, locks, prepared statements, listened channels, temporary tables: whatever outlives a transaction. */
const looks: Readonly<Record<string, string>> = {
  "a setting": `select name, setting from pg_settings
    where source = 'session' and name not in ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'IntervalStyle', 'standard_conforming_strings', 'extra_float_digits')`,
  "an advisory lock": `select classid, objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()`,
  "a prepared statement": "select name from pg_prepared_statements where not from_sql or name <> ''",
  "a channel": "select pg_listening_channels() as channel",
  "a temporary table": `select relname from pg_class where relpersistence = 't' and pg_my_temp_schema() = relnamespace`,
};

/** What can be left behind. */
export const leakable = Object.keys(looks);

/** Somebody else who uses the same pool, and looks all the time at what Pawl has left on its connections. */
export class Stranger implements AsyncDisposable {
  readonly leaks: Leak[] = [];
  looks = 0;
  /** Server connections it has been given. */
  readonly backends = new Set<number>();
  readonly #pool: pg.Pool;
  readonly #going: Promise<void>;
  #isOver = false;

  constructor(url: string) {
    this.#pool = new pg.Pool({ connectionString: url, max: 2 });
    this.#pool.on("error", () => {});
    this.#going = this.#lookOnAndOn();
  }

  async #lookOnAndOn(): Promise<void> {
    while (!this.#isOver) {
      try {
        for (const [what, sql] of Object.entries(looks)) {
          const { rows } = await this.#pool.query(sql);
          if (rows.length > 0) this.leaks.push({ what, rows });
          this.looks += 1;
        }
        const { rows } = await this.#pool.query<{ pid: number }>("select pg_backend_pid() as pid");
        for (const { pid } of rows) this.backends.add(pid);
      } catch {
        // The pooler is away: that is another's concern.
        await pause(50);
      }
      await pause(5);
    }
  }

  /** Looks no more. */
  async leave(): Promise<void> {
    this.#isOver = true;
    await this.#going;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
    await this.#pool.end();
  }
}
