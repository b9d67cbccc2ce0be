import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { createPawl, type Pawl, type PawlOptions } from "../../packages/pawl/src/index.ts";
import type { Report } from "../hist/verdict.ts";

/** Something that only a real database can do to the engine, and what must come of it. */
export interface Scene {
  /** What is promised, in a sentence. */
  readonly name: string;
  /** The invariant that this is about. */
  readonly invariant: string;
  /** Reports what is not as it was promised. */
  play(props: Props, report: Report): Promise<void>;
}

/** A schema with Pawl's tables and a table of the user's, and connections to them. */
export class Props implements AsyncDisposable {
  readonly url: string;
  readonly schema = `scene_${randomBytes(6).toString("hex")}`;
  /** What transactions write: `run_id text, note text`. */
  readonly ledger = `public.ledger_${this.schema}`;
  readonly pool: pg.Pool;
  readonly pawl: Pawl;
  readonly #owned: AsyncDisposable[] = [];

  private constructor(url: string) {
    this.url = url;
    this.pool = new pg.Pool({ connectionString: url, max: 4 });
    this.pool.on("error", () => {});
    // One that a scene has been given up with is lent when the server stops.
    this.pool.on("connect", (client) => client.on("error", () => {}));
    this.pawl = this.connect();
  }

  static async create(url: string): Promise<Props> {
    const props = new Props(url);
    await props.pawl.migrate();
    await props.pool.query(`create table ${props.ledger} (run_id text, note text)`);
    return props;
  }

  /** Another Pawl on the same tables, closed at the end of the scene. */
  connect(options: Partial<PawlOptions> = {}): Pawl {
    const pawl = createPawl({ url: this.url, schema: this.schema, ...options });
    this.own({ [Symbol.asyncDispose]: () => pawl.close({ timeout: 0 }) });
    return pawl;
  }

  /** Closes something at the end of the scene, however it ends. */
  own<Resource extends AsyncDisposable>(resource: Resource): Resource {
    this.#owned.push(resource);
    return resource;
  }

  /** The first column of what a statement answers; `{schema}` stands for the schema. */
  async ask<Value>(text: string, values: readonly unknown[] = []): Promise<readonly Value[]> {
    const query = { text: text.replaceAll("{schema}", this.schema), values: [...values], rowMode: "array" };
    const { rows } = await this.pool.query<Value[]>(query as pg.QueryArrayConfig);
    return rows.map(([first]) => first as Value);
  }

  /** What transactions of this run have written. */
  notesOf(runId: string): Promise<readonly string[]> {
    return this.ask(`select note from ${this.ledger} where run_id = $1`, [runId]);
  }

  /** The kinds and names of a run's facts, in order. */
  factsOf(runId: string): Promise<readonly string[]> {
    const text = "select concat_ws(' ', kind, name) from {schema}.event where run_id = $1 order by seq";
    return this.ask(text, [runId]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A scene that was given up holds on to connections, which would be waited for.
    for (const resource of this.#owned.toReversed())
      await within(Promise.resolve(resource[Symbol.asyncDispose]()), longestClosingMs);
    await within(this.pool.end(), longestClosingMs);
  }
}

const longestClosingMs = 3_000;

/** Whether it comes true within this time. */
export async function comesTrue(
  isTrue: () => boolean | Promise<boolean>,
  withinMs = 15_000,
): Promise<boolean> {
  const giveUpAt = performance.now() + withinMs;
  while (!(await isTrue())) {
    if (performance.now() >= giveUpAt) return false;
    await pause(10);
  }
  return true;
}

/** What a run, or anything, comes to within this time; null if it takes longer. What it fails with counts, too. */
export function within<Value>(promise: Promise<Value>, ms = 20_000): Promise<Value | Error | null> {
  const ended = promise.catch((error: unknown) =>
    error instanceof Error ? error : new Error(String(error)),
  );
  return Promise.race([ended, pause(ms, null, { ref: false })]);
}
