import { setTimeout as pause } from "node:timers/promises";
import type { PrivateServer } from "pawl-test-support/private-server";
import type pg from "pg";
import type { Rng } from "../sim/rng.ts";
import type { ChaosWorker } from "./chaos-worker.ts";
import { monotonicMs } from "./monotonic.ts";
import type { Fault, Hit } from "./wire-link.ts";
import type { WireProxy } from "./wire-proxy.ts";
import type { Workforce } from "./workforce.ts";

export interface NemesisParts {
  readonly rng: Rng;
  readonly leaseMs: number;
  readonly workforce: Workforce;
  /** Whether this process holds so many runs that others will take some of them over soon. */
  readonly isBusy: (pid: number) => boolean;
  /** Of the workers and of the client. */
  readonly proxies: readonly WireProxy[];
  readonly server: PrivateServer;
  /** As the server's owner, past all proxies. */
  readonly pool: pg.Pool;
  /** What one of its users may do with a transaction. */
  readonly useTransaction: (rng: Rng, holdMs: number) => Promise<boolean>;
}

export interface Restart {
  readonly mode: "fast" | "immediate";
  /** The process that was killed a lease before. */
  readonly pid: number;
  readonly at: number;
  readonly upAt: number;
}

/** Statements that write something, each a transaction of its own, and how an answer tells that it did. */
const writes: Readonly<Record<string, (rows: readonly (string | null)[]) => boolean>> = {
  create_runs: () => true,
  record_events: (rows) => rows.length > 0,
  record_step: (rows) => rows.length > 0,
  park_runs: (rows) => rows.length > 0,
  // Names the runs that it did not end.
  end_runs: (rows) => rows.length === 0,
  tell_runs: (rows) => rows.length > 0,
  heartbeat: () => true,
  sweep: () => true,
  commit: () => true,
};
const claim = "claim_runs";
/** Those of a user's transaction in which a cut undoes everything. */
const inside = ["begin", "open_transaction", "effect", "record_in_transaction"];
/** A server that ends sooner than this after its start is given up by its supervisor after some times. */
const restartEveryMs = 5_300;
/** Nobody is stopped for longer. */
const mostFrozenLeases = 6;
/** An armed fault that nothing came to is called off. */
const patienceMs = 1_500;

function mostMs(forMs: number): number {
  return 2 * forMs + 5_000;
}

interface Hand {
  readonly name: string;
  /** Mean time between two of its acts; the first comes after a part of it. */
  readonly everyMs: number;
  readonly act: (rng: Rng) => Promise<unknown>;
}

/** Many hands, each with its own chance, that break things at the same time. What was done is told; what it did is found out later. */
export class Nemesis {
  readonly #parts: NemesisParts;
  readonly restarts: Restart[] = [];
  readonly hits: Hit[] = [];
  /** How often backends were ended at the server, and listeners among them. */
  terminated = 0;
  terminatedListeners = 0;
  openTransactions = 0;
  /** What it did, for people. */
  readonly log: string[] = [];
  readonly #beganAt = monotonicMs();
  #isOver = false;
  #restartedAt = monotonicMs() - restartEveryMs * 0.75;

  constructor(parts: NemesisParts) {
    this.#parts = parts;
  }

  /** For so long, and on a slow machine for longer, until there was some of everything. */
  async strike(forMs: number, density: number): Promise<void> {
    const hands = this.#hands(density);
    const moving = Promise.all(hands.map((hand) => this.#move(hand)));
    const beganAt = monotonicMs();
    for (let ms = 0; ms < forMs || (ms < mostMs(forMs) && !this.#hasDoneSome); ms = monotonicMs() - beganAt)
      await pause(50);
    this.#isOver = true;
    await moving;
    for (const proxy of this.#parts.proxies) proxy.disarm();
  }

  get #hasDoneSome(): boolean {
    const { deeds } = this.#parts.workforce;
    const freezes = deeds.filter(({ kind }) => kind === "freeze").length;
    const lost = this.hits.filter(({ isCommitted }) => isCommitted);
    const claims = lost.filter(({ statement }) => statement.endsWith(claim)).length;
    const isInside = ({ fault, isCommitted, statement }: Hit): boolean =>
      fault.kind === "lose" && !isCommitted && statement !== "";
    return (
      deeds.length - freezes >= 22 &&
      freezes >= 6 &&
      claims >= 3 &&
      lost.length - claims >= 6 &&
      this.hits.some(isInside) &&
      this.restarts.length >= 2 &&
      this.terminated >= 6 &&
      this.openTransactions >= 1
    );
  }

  #hands(density: number): readonly Hand[] {
    const { leaseMs } = this.#parts;
    const every = (ms: number): number => ms / density;
    const losses = Object.keys(writes);
    return [
      { name: "kill", everyMs: every(0.5 * leaseMs + 300), act: (rng) => this.#kill(rng) },
      { name: "freeze", everyMs: every(1.1 * leaseMs), act: (rng) => this.#freeze(rng) },
      { name: "lose", everyMs: every(400), act: (rng) => this.#wire(rng, "lose", rng.pick(losses)) },
      { name: "lose claim", everyMs: every(500), act: (rng) => this.#wire(rng, "lose", claim) },
      {
        name: "cut",
        everyMs: every(900),
        act: (rng) => this.#wire(rng, "cut", rng.pick([...losses, claim])),
      },
      {
        name: "cut inside",
        everyMs: every(1_200),
        act: (rng) => this.#wire(rng, rng.pick(["cut", "lose"]), rng.pick(inside)),
      },
      { name: "terminate", everyMs: every(1_200), act: (rng) => this.#terminate(rng) },
      { name: "terminate listener", everyMs: every(2_500), act: () => this.#terminateListener() },
      { name: "half-open", everyMs: every(3_000), act: (rng) => this.#swallow(rng) },
      { name: "restart", everyMs: leaseMs, act: (rng) => this.#restartInTakeOver(rng) },
      { name: "statement_timeout", everyMs: every(7_000), act: (rng) => this.#timeOut(rng) },
      { name: "too many connections", everyMs: every(8_000), act: (rng) => this.#refuse(rng) },
      { name: "open transaction", everyMs: every(1_500), act: (rng) => this.#openTransaction(rng) },
    ];
  }

  async #move({ name, everyMs, act }: Hand): Promise<void> {
    const rng = this.#parts.rng.fork(name);
    let waitMs = everyMs * rng.between(0.1, 0.6);
    for (;;) {
      await this.#pause(waitMs);
      if (this.#isOver) return;
      await act(rng);
      waitMs = everyMs * rng.between(0.4, 1.6);
    }
  }

  /** No longer than until the end. */
  async #pause(ms: number): Promise<void> {
    const until = monotonicMs() + ms;
    while (!this.#isOver && monotonicMs() < until)
      await pause(Math.min(50, Math.max(1, until - monotonicMs())));
  }

  #note(what: string): void {
    this.log.push(`${(monotonicMs() - this.#beganAt).toFixed(0).padStart(7)} ${what}`);
  }

  /** One that holds runs; null if there is none, or fewer than this are at work. */
  #victim(rng: Rng, least: number): ChaosWorker | null {
    const { working } = this.#parts.workforce;
    const busy = working.filter(({ pid }) => this.#parts.isBusy(pid));
    return working.length < least || busy.length === 0 ? null : rng.pick(busy);
  }

  async #kill(rng: Rng): Promise<void> {
    const victim = this.#victim(rng, 1);
    if (victim === null) return;
    this.#note(`kill ${victim.pid}`);
    await this.#parts.workforce.kill(victim);
  }

  #freeze(rng: Rng): Promise<void> {
    const { workforce } = this.#parts;
    // Somebody must take over.
    const victim = this.#victim(rng, 2);
    if (victim !== null) {
      this.#note(`freeze ${victim.pid}`);
      workforce.freeze(victim, () => this.#takeOver(victim.pid, rng.between(0, 0.5)));
    }
    return Promise.resolve();
  }

  /** Resolves when others have runs that this process held, and a part of a lease later; or when that takes too long. */
  async #takeOver(pid: number, leases: number): Promise<void> {
    const { leaseMs } = this.#parts;
    const until = monotonicMs() + mostFrozenLeases * leaseMs;
    const held = await this.#ask<{ id: string; n: string }>(
      "select id, (select max(n) from chaos.log) as n from pawl.worker where pid = $1 and ended_at is null",
      [pid],
    );
    await pause(leaseMs);
    while (held !== null && monotonicMs() < until) {
      const taken = await this.#ask(
        `select 1 from chaos.log l join chaos.log c on c.run = l.run and c.n > l.n
          where l.what = 'left' and l.op = 'sweep' and l.n > $1 and l.worker = any ($2) and c.what = 'claimed' limit 1`,
        [held[0]?.n ?? 0, held.map(({ id }) => id)],
      );
      if (taken?.length === 1) break;
      await pause(leaseMs / 10);
    }
    await pause(leases * leaseMs);
  }

  async #wire(rng: Rng, kind: "cut" | "lose", statement: string): Promise<void> {
    const isWorth = statement === claim ? (rows: readonly unknown[]) => rows.length > 1 : writes[statement];
    const fault: Fault = { kind, statement, ...(isWorth === undefined ? {} : { isWorth }) };
    const armed = this.#parts.proxies.map(async (proxy) => {
      const hit = await proxy.inject(fault);
      for (const other of this.#parts.proxies) other.withdraw(fault);
      return hit;
    });
    const hit = await Promise.race([...armed, this.#pause(patienceMs)]);
    for (const proxy of this.#parts.proxies) proxy.withdraw(fault);
    if (hit === undefined) return;
    this.#note(`${kind} ${statement}`);
    this.hits.push(hit);
    await this.#pause(rng.next());
  }

  /** Null while the server is down. */
  async #ask<Row extends pg.QueryResultRow>(
    text: string,
    values: unknown[] = [],
  ): Promise<readonly Row[] | null> {
    try {
      return (await this.#parts.pool.query<Row>(text, values)).rows;
    } catch {
      return null;
    }
  }

  async #terminate(rng: Rng, share = 0.2): Promise<void> {
    const rows = await this.#ask<{ pid: number }>("select pid from pg_stat_activity where usename = 'app'");
    const pids = (rows ?? []).map(({ pid }) => pid).filter(() => rng.chance(share));
    const ended = await this.#ask("select 1 from unnest($1::int[]) pid where pg_terminate_backend(pid)", [
      pids,
    ]);
    this.terminated += ended?.length ?? 0;
    this.#note(`terminate ${ended?.length ?? "nothing"}`);
  }

  async #terminateListener(): Promise<void> {
    const ended = await this.#ask(
      `select 1 from (select pid from pg_stat_activity where usename = 'app' and query ilike 'listen%' limit 1) l
        where pg_terminate_backend(l.pid)`,
    );
    this.terminatedListeners += ended?.length ?? 0;
    this.#note(`terminate ${ended?.length ?? "no"} listener`);
  }

  #swallow(rng: Rng): Promise<void> {
    const { links } = rng.pick(this.#parts.proxies);
    if (links.length === 0) return Promise.resolve();
    const listener = links.find(({ isListener }) => isListener);
    const link = rng.chance(0.3) && listener !== undefined ? listener : rng.pick(links);
    this.#note(`half-open${link.isListener ? " listener" : ""}`);
    link.swallow();
    return Promise.resolve();
  }

  /** Kills one that holds runs, and ends the server when its lease has run out and nobody has its runs yet. */
  async #restartInTakeOver(rng: Rng): Promise<void> {
    if (monotonicMs() < this.#restartedAt + restartEveryMs) return;
    const { workforce, server, leaseMs } = this.#parts;
    const rows = await this.#ask<{ pid: number }>(
      "select distinct w.pid from pawl.live_runs l join pawl.worker w on w.id = l.worker_id where w.ended_at is null",
    );
    const holding = new Set(rows?.map(({ pid }) => pid));
    const victims = workforce.working.filter(({ pid }) => holding.has(pid));
    if (victims.length === 0 || workforce.working.length < 2) return;
    const victim = rng.pick(victims);
    const pid = await workforce.kill(victim);
    if (pid === null) return;
    const leases = await this.#ask<{ left: number }>(
      `select extract(epoch from heard_at - clock_timestamp())::float8 * 1000 + lease_ms as left
         from pawl.worker where pid = $1 and ended_at is null order by heard_at desc limit 1`,
      [pid],
    );
    const leftMs = leases?.[0]?.left;
    if (leftMs === undefined || leftMs > leaseMs) return;
    await this.#pause(leftMs);
    await (rng.chance(0.5) ? this.#sweepIsSent() : this.#pause(rng.between(0, leaseMs / 10)));
    const mode = rng.pick(["immediate", "fast"] as const);
    this.#note(`restart ${mode} after the lease of ${pid}`);
    const at = monotonicMs();
    await server.restart(mode);
    const upAt = monotonicMs();
    this.#restartedAt = upAt;
    this.restarts.push({ mode, pid, at, upAt });
    this.#note(`up after ${(upAt - at).toFixed(0)}`);
  }

  /** Resolves when somebody looks for dead workers, with the statement on its way. */
  async #sweepIsSent(): Promise<void> {
    const fault: Fault = { kind: "delay", statement: "sweep" };
    const sent = this.#parts.proxies.map((proxy) => proxy.inject(fault));
    const hit = await Promise.race([...sent, this.#pause(this.#parts.leaseMs / 2)]);
    for (const proxy of this.#parts.proxies) proxy.withdraw(fault);
    hit?.letGo();
    // Should two have been caught at once.
    for (const other of sent) void other.then((hit) => hit.letGo());
  }

  /** For a moment statements may take no time, on connections that are made in it. */
  async #timeOut(rng: Rng): Promise<void> {
    this.#note("statement_timeout");
    await this.#ask("alter role app set statement_timeout = '2ms'");
    await this.#terminate(rng, 0.5);
    await this.#pause(400);
    await this.#insist("alter role app reset statement_timeout");
    await this.#ask(
      "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app' and backend_start > clock_timestamp() - interval '2 seconds'",
    );
  }

  /** For a moment the server lets nobody in. */
  async #refuse(rng: Rng): Promise<void> {
    this.#note("too many connections");
    await this.#ask("alter role app connection limit 1");
    await this.#terminate(rng, 0.5);
    await this.#pause(500);
    await this.#insist("alter role app connection limit -1");
  }

  /** What was set must be unset, whatever else happens. */
  async #insist(text: string): Promise<void> {
    while ((await this.#ask(text)) === null) await pause(50);
  }

  async #openTransaction(rng: Rng): Promise<void> {
    const holdMs = this.#parts.leaseMs * rng.between(1, 2);
    if (await this.#parts.useTransaction(rng, holdMs)) this.openTransactions += 1;
    this.#note(`open transaction for ${holdMs.toFixed(0)}`);
  }
}
