import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { PrivateServer } from "pawl-test-support/private-server";
import pg from "pg";
import { completionTableSql } from "../../packages/pawl/src/adapters/index.ts";
import { createPawl, type Pawl } from "../../packages/pawl/src/index.ts";
import { schemaName } from "../../packages/pawl/src/postgres/schema-name.ts";
import type { SnapshotRun, StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import { pgbouncer, startPgBouncer, type PgBouncer } from "../../packages/pawl/test/postgres/pgbouncer.ts";
import { takeSnapshot } from "../../packages/pawl/test/postgres/snapshot.ts";
import { Recorder } from "../hist/record.ts";
import type { Violation } from "../hist/verdict.ts";
import { createRng } from "../sim/rng.ts";
import { count, type Tally } from "../sim/tally.ts";
import { auditSql, effectSql, readAudit, readEffects } from "./audit.ts";
import { checkRound } from "./check-round.ts";
import { Clientele } from "./clientele.ts";
import { Crowd } from "./crowd.ts";
import { countEffective } from "./effects.ts";
import { Claims } from "./history.ts";
import { monotonicMs } from "./monotonic.ts";
import { Nemesis } from "./nemesis.ts";
import { SideCar } from "./side-car.ts";
import { dumpState } from "./stuck.ts";
import { UserTransactions } from "./user-transactions.ts";
import { WireProxy } from "./wire-proxy.ts";
import { Workforce, type Post } from "./workforce.ts";

export interface RoundOptions {
  readonly seed: string;
  readonly server: PrivateServer;
  /** Of the database, which is its own. */
  readonly name: string;
  readonly workerPath: string;
  readonly leaseMs: number;
  readonly faultMs: number;
  readonly workers: number;
  readonly density: number;
}

export interface RoundReport {
  readonly landed: Tally;
  readonly violations: readonly Violation[];
  readonly runs: number;
  readonly asked: number;
  readonly answered: number;
  readonly drainedMs: number;
  /** Kills, stops and restarts, whether they took effect or not. */
  readonly deeds: Tally;
}

const connections = 4;
const clients = 4;
/** Of the workers in turn. */
const concurrencies = [3, 2, 4, 2, 3, 2];
/** What a worker held alone when it died is suspect at once, and others leave it alone for a while: its take-over would be late. */
const busyRuns = 2;
const spares = 3;
const crashLimit = 1_000;
const retryMs = 20;
/** Runs that wait to be claimed, about so many: enough that every worker always has some. */
const load = 16;
const crowdsEveryMs = 2_000;
/** Scenarios that begin after healing. */
const lateScenarios = 10;
const slackMs = 10_000;
/** A worker waits for 30 s for what it executes. */
const leaveMs = 40_000;
/** Nothing at all happens for so long: it will not. */
const stuckMs = 20_000;
const twoHoursMs = 2 * 3_600_000;

/** Warms up, breaks things, heals, drains, reads everything, and checks it. */
export async function runRound(options: RoundOptions): Promise<RoundReport> {
  const round = new Round(options);
  try {
    return await round.run();
  } finally {
    await round.clear();
  }
}

class Round {
  readonly #options: RoundOptions;
  /** What is closed at the end, the last first. */
  readonly #closers: (() => Promise<unknown>)[] = [];
  readonly #sideCar = new SideCar();
  readonly #landed: Tally = new Map();
  readonly #deeds: Tally = new Map();
  /** Runs that each process held a moment ago. */
  readonly #held = new Map<number, number>();
  /** From the monotonic clock to the database's. */
  #offsetMs = 0;

  constructor(options: RoundOptions) {
    this.#options = options;
  }

  async clear(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
  }

  async run(): Promise<RoundReport> {
    const { seed, server, leaseMs, faultMs, density } = this.#options;
    const { pool, foreign, appUrl, foreignUrl } = await this.#prepareDatabase();
    await this.#learnOffset(pool);
    const clientProxy = await this.#listen(appUrl);
    const posts = await this.#posts(appUrl, foreignUrl);
    const proxies = [clientProxy, ...posts.map(({ proxy }) => proxy)];
    const workforce = this.#hire(posts);
    const pawls = Array.from({ length: clients }, () => this.#connectPawl(clientProxy.url));
    const recorder = new Recorder(() => this.#toStoreTime(monotonicMs()), false);
    const clientele = new Clientele({ pawls, pool, seed, recorder, leaseMs, retryMs, crashLimit });
    const transactions = new UserTransactions(appUrl, this.#connectPawl(appUrl));
    const crowd = new Crowd(this.#connectPawl(clientProxy.url), createRng(`${seed}/crowd`));
    await workforce.start();

    const rng = createRng(`${seed}/nemesis`);
    const useTransaction = transactions.use.bind(transactions);
    const isBusy = (pid: number): boolean => (this.#held.get(pid) ?? 0) >= busyRuns;
    const nemesis = new Nemesis({ rng, leaseMs, workforce, proxies, server, pool, useTransaction, isBusy });
    let isFeeding = true;
    const feeding = this.#feed(pool, clientele, () => isFeeding);
    const crowding = this.#bringCrowds(crowd, () => isFeeding);
    await nemesis.strike(faultMs, density);
    isFeeding = false;
    await Promise.all([feeding, crowding]);
    clientele.heal();
    const healedAt = monotonicMs();
    await Promise.all([workforce.isComplete(), crowd.settle()]);
    for (let n = 0; n < lateScenarios; n++) clientele.begin();
    const boundMs = 2 * leaseMs + slackMs + clientele.workMs;
    const isDrained = await this.#drain(pool, clientele, healedAt + boundMs);
    const drainedMs = monotonicMs() - healedAt;
    const stuck = isDrained ? [] : [await this.#describeStuck(pool, workforce, nemesis, drainedMs)];
    await pause(leaseMs / 2);
    await this.#leave(workforce);
    const { violations, runs } = await this.#check(pool, {
      foreign,
      clientele,
      workforce,
      nemesis,
      transactions,
      crowd,
      recorder,
      posts,
      proxies,
    });
    const all = [...stuck, ...violations];
    if (all.length > 0) await writeFile(this.schedulePath, nemesis.log.join("\n"));
    return {
      landed: this.#landed,
      violations: all,
      runs,
      ...clientele.afterHealing,
      drainedMs,
      deeds: this.#deeds,
    };
  }

  /** What the nemesis did, if the round failed. */
  get schedulePath(): string {
    return join(tmpdir(), `pawl-chaos-${this.#options.seed.replaceAll(/[^\w.-]/g, "_")}.txt`);
  }

  #connectPawl(url: string): Pawl {
    const pawl = createPawl({ url, schema: "pawl", connections });
    this.#closers.push(() => pawl.close({ timeout: 0 }));
    return pawl;
  }

  async #listen(url: string): Promise<WireProxy> {
    const proxy = await WireProxy.listen(url);
    this.#closers.push(() => proxy[Symbol.asyncDispose]());
    return proxy;
  }

  readonly #toStoreTime = (at: number): number => at + this.#offsetMs;

  async #prepareDatabase(): Promise<{
    readonly pool: pg.Pool;
    readonly foreign: pg.Pool;
    readonly appUrl: string;
    readonly foreignUrl: string;
  }> {
    const { server, name } = this.#options;
    const url = await server.createDatabase(name);
    const pool = this.#connect(url);
    await pool.query(
      "do $$ begin if not exists (select from pg_roles where rolname = 'app') then create role app login password 'app'; end if; end $$",
    );
    const owner = createPawl({ url, schema: "pawl", listen: false });
    await owner.migrate({ grantTo: "app" });
    await owner.close();
    await pool.query(auditSql + effectSql);
    const foreignUrl = await server.createDatabase(`${name}_foreign`);
    const foreign = this.#connect(foreignUrl);
    await foreign.query(completionTableSql() + effectSql);
    await foreign.query("grant select, insert, update, delete on all tables in schema public to app");
    return { pool, foreign, appUrl: urlOfApp(url), foreignUrl: urlOfApp(foreignUrl) };
  }

  #connect(url: string): pg.Pool {
    const pool = new pg.Pool({ connectionString: url, max: 6, application_name: "chaos" });
    pool.on("error", () => {});
    this.#closers.push(() => pool.end());
    return pool;
  }

  /** Never too small, so that what follows an answer of the database does not seem to come before it. */
  async #learnOffset(pool: pg.Pool): Promise<void> {
    let offset = Number.POSITIVE_INFINITY;
    for (let n = 0; n < 30; n++) {
      const at = monotonicMs();
      const { rows } = await pool.query<{ now: number }>(
        "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now",
      );
      offset = Math.min(offset, (rows[0]?.now ?? 0) - at);
    }
    this.#offsetMs = offset;
  }

  /** The first by way of a pooler, if there is one; the next two with clocks that are wrong. */
  async #posts(appUrl: string, foreignUrl: string): Promise<readonly Post[]> {
    const posts: Post[] = [];
    for (let n = 0; n < this.#options.workers; n++) {
      const isPooled = n === 0 && pgbouncer !== undefined;
      const proxy = await this.#listen(isPooled ? (await this.#pooler(appUrl)).url : appUrl);
      const skewMs = n === 1 ? twoHoursMs : n === 2 ? -twoHoursMs : 0;
      const concurrency = concurrencies[n % concurrencies.length] ?? 1;
      // The pooler knows one database only.
      const direct = isPooled ? await this.#listen(foreignUrl) : proxy;
      posts.push({
        proxy,
        isPooled,
        concurrency,
        url: proxy.url,
        foreignUrl: withDatabaseOf(foreignUrl, direct.url),
        skewMs,
      });
    }
    return posts;
  }

  async #pooler(appUrl: string): Promise<PgBouncer> {
    const bouncer = await startPgBouncer(appUrl);
    this.#closers.push(() => bouncer.stop());
    return bouncer;
  }

  #hire(posts: readonly Post[]): Workforce {
    const { workerPath: path, leaseMs } = this.#options;
    const settings = {
      schema: "pawl",
      leaseMs,
      connections,
      pollMs: 200,
      crashLimit,
      retryMs,
    };
    const hear = this.#sideCar.hear.bind(this.#sideCar);
    const workforce = new Workforce({ path, settings, posts, spares, hear });
    this.#closers.push(() => workforce.end());
    return workforce;
  }

  async #bringCrowds(crowd: Crowd, isFeeding: () => boolean): Promise<void> {
    while (isFeeding()) {
      crowd.come();
      await pause(crowdsEveryMs);
    }
  }

  async #feed(pool: pg.Pool, clientele: Clientele, isFeeding: () => boolean): Promise<void> {
    while (isFeeding()) {
      try {
        await clientele.lookForBorn();
        const { rows } = await pool.query<{ waiting: number; pids: readonly number[] }>(
          `select (select count(*) from pawl.ready where not suspect and workflow <> 'job')::int as waiting,
                  array(select w.pid from pawl.live_runs l join pawl.worker w on w.id = l.worker_id) as pids`,
        );
        this.#held.clear();
        for (const pid of rows[0]?.pids ?? []) this.#held.set(pid, (this.#held.get(pid) ?? 0) + 1);
        const missing = load - (rows[0]?.waiting ?? 0);
        for (let n = 0; n < missing / 4; n++) clientele.begin();
      } catch {
        // The server is down.
      }
      await pause(40);
    }
  }

  /** False: not all that could end has ended by then. */
  async #drain(pool: pg.Pool, clientele: Clientele, until: number): Promise<boolean> {
    let rests = 0;
    let lastLine = 0;
    let movedAt = monotonicMs();
    for (;;) {
      await clientele.lookForBorn();
      const { left } = await clientele.unsettled();
      rests = left === 0 ? rests + 1 : 0;
      if (rests === 3) return true;
      const { rows } = await pool.query<{ n: number }>(
        "select coalesce(max(n), 0)::float8 as n from chaos.log where what not in ('heard', 'registered')",
      );
      const line = rows[0]?.n ?? 0;
      if (line > lastLine) movedAt = monotonicMs();
      lastLine = line;
      if (monotonicMs() > until || monotonicMs() > movedAt + stuckMs) return false;
      await pause(50);
    }
  }

  async #describeStuck(
    pool: pg.Pool,
    workforce: Workforce,
    nemesis: Nemesis,
    ms: number,
  ): Promise<Violation> {
    const folder = await dumpState(pool, workforce, nemesis.log);
    return {
      invariant: "I17",
      says: `not drained ${Math.round(ms)} ms after healing; see ${folder}`,
      witness: [],
    };
  }

  async #leave(workforce: Workforce): Promise<void> {
    await Promise.all(
      workforce.working.map((worker) =>
        Promise.race([worker.leave(), pause(leaveMs, undefined, { ref: false })]),
      ),
    );
  }

  async #check(
    pool: pg.Pool,
    parts: {
      readonly foreign: pg.Pool;
      readonly clientele: Clientele;
      readonly workforce: Workforce;
      readonly nemesis: Nemesis;
      readonly transactions: UserTransactions;
      readonly crowd: Crowd;
      readonly recorder: Recorder;
      readonly posts: readonly Post[];
      readonly proxies: readonly WireProxy[];
    },
  ): Promise<{ readonly violations: readonly Violation[]; readonly runs: number }> {
    const { clientele, workforce, nemesis, transactions, crowd, recorder, posts, proxies } = parts;
    const toStoreTime = this.#toStoreTime;
    const lines = await readAudit(pool);
    const effects = [...(await readEffects(pool, "own")), ...(await readEffects(parts.foreign, "foreign"))];
    const snapshot = await takeSnapshot(pool, schemaName("pawl"));
    const claims = new Claims(lines);
    const rootKeyOf = createRootKeys(snapshot);
    const sqlStates = new Map<string, number>();
    for (const proxy of proxies) for (const [state, times] of proxy.sqlStates) count(sqlStates, state, times);
    const { deeds, losses } = workforce;
    this.#countWire(nemesis, sqlStates, proxies);
    for (const { kind } of deeds) count(this.#deeds, kind);
    count(this.#deeds, "restart", nemesis.restarts.length);
    const effective = countEffective(lines, claims, {
      deeds,
      losses,
      restarts: nemesis.restarts,
      toStoreTime,
    });
    count(this.#landed, "kill -9 of a worker that held runs", effective.kills);
    count(this.#landed, "zombie whose runs were taken over", effective.zombies);
    count(this.#landed, "restart during take-over", effective.restartsInTakeOver);
    count(
      this.#landed,
      "claim behind a wrong clock",
      this.#claimsOf(claims, workforce, ({ skewMs }) => skewMs !== 0),
    );
    if (posts.some(({ isPooled }) => isPooled))
      count(
        this.#landed,
        "claim through PgBouncer",
        this.#claimsOf(claims, workforce, ({ isPooled }) => isPooled),
      );
    count(this.#landed, "user's transaction left open", nemesis.openTransactions);
    count(this.#landed, "job started with others", crowd.size);
    const crowds = posts.filter(({ proxy }) => proxy.mostLinks > 4 * connections + 3);
    const violations = checkRound({
      lines,
      effects,
      snapshot,
      ledger: this.#sideCar.lines,
      clientEntries: recorder.entries,
      claims,
      toStoreTime,
      expected: (run) => clientele.expect(run, rootKeyOf),
      transactions: transactions.outcomes,
      crowd,
      logs: workforce.logs,
      troubles: [
        ...workforce.troubles,
        ...workforce.crashed,
        ...clientele.troubles,
        ...crowds.map(({ proxy }) => `${proxy.mostLinks} connections of one worker at once`),
      ],
      sqlStates,
    });
    return { violations, runs: snapshot.runs.length };
  }

  #countWire(nemesis: Nemesis, sqlStates: ReadonlyMap<string, number>, proxies: readonly WireProxy[]): void {
    for (const { fault, statement, isCommitted } of nemesis.hits) {
      if (fault.kind === "cut")
        count(this.#landed, statement === "commit" ? "cut before COMMIT" : "cut before a statement");
      else if (!isCommitted) count(this.#landed, "cut inside a transaction");
      else count(this.#landed, statement.endsWith("claim_runs") ? "lost claim reply" : "lost COMMIT reply");
    }
    count(this.#landed, "backend terminated", nemesis.terminated);
    count(this.#landed, "LISTEN backend terminated", nemesis.terminatedListeners);
    count(this.#landed, "restart, fast", nemesis.restarts.filter(({ mode }) => mode === "fast").length);
    count(
      this.#landed,
      "restart, immediate",
      nemesis.restarts.filter(({ mode }) => mode === "immediate").length,
    );
    count(this.#landed, "statement timed out (57014)", sqlStates.get("57014") ?? 0);
    count(this.#landed, "too many connections (53300)", sqlStates.get("53300") ?? 0);
    count(
      this.#landed,
      "half-open connection given up",
      proxies.reduce((sum, proxy) => sum + proxy.endedHalfOpen, 0),
    );
  }

  #claimsOf(claims: Claims, workforce: Workforce, isMeant: (post: Post) => boolean): number {
    const pids = [...workforce.postOf].filter(([, post]) => isMeant(post)).map(([pid]) => pid);
    return claims.countOf(new Set(pids));
  }
}

function urlOfApp(url: string): string {
  const own = new URL(url);
  own.username = "app";
  own.password = "app";
  return own.href;
}

/** The same way, to another database. */
function withDatabaseOf(url: string, way: string): string {
  const { hostname, port } = new URL(way);
  return Object.assign(new URL(url), { hostname, port }).href;
}

/** The key of the run at the root of each. */
function createRootKeys({ runs }: StoreSnapshot): (run: SnapshotRun) => string | null {
  const keys = new Map(runs.map(({ id, key }) => [id, key]));
  return ({ key, rootId }) => key ?? keys.get(rootId) ?? null;
}
