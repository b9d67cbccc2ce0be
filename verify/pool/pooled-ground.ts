import pg from "pg";
import type { Pawl } from "../../packages/pawl/src/index.ts";
import { startPgBouncer, type PgBouncer } from "../../packages/pawl/test/postgres/pgbouncer.ts";
import { Ground } from "../scenes/ground.ts";

/** A ground whose workers and clients reach it through a pooler that shares connections by transaction. */
export class PooledGround implements AsyncDisposable {
  readonly ground: Ground;
  readonly bouncer: PgBouncer;
  /** Through the pooler. */
  readonly pawl: Pawl;
  readonly #console: pg.Pool;

  private constructor(ground: Ground, bouncer: PgBouncer) {
    this.ground = ground;
    this.bouncer = bouncer;
    this.pawl = ground.connect({ url: bouncer.url });
    this.#console = new pg.Pool({ connectionString: bouncer.adminUrl, max: 1 });
    this.#console.on("error", () => {});
  }

  static async open(settings: Readonly<Record<string, string>> = {}): Promise<PooledGround> {
    const ground = await Ground.open();
    return new PooledGround(ground, await startPgBouncer(ground.url, settings));
  }

  /** Says this to its console. */
  async command(sql: string): Promise<void> {
    await this.#console.query(sql);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#console.end();
    await this.ground[Symbol.asyncDispose]();
    await this.bouncer.stop();
  }
}
