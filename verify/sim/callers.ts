import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { chainOf, walk, type Program } from "../gen/program.ts";
import {
  greetingOf,
  type BulkPlan,
  type BatchPlan,
  type RedrivePlan,
  type ReschedulePlan,
  type RootPlan,
  type Scenario,
} from "../gen/scenario.ts";
import type { SeenEnd } from "../hist/check-facts.ts";
import type { StartedItem } from "../hist/check-starts.ts";
import type { ClientEntry, Recorder } from "../hist/record.ts";
import type { Answered, Asked, ClientPort, ClientProcess, StoppedStatus } from "./client-port.ts";
import { look } from "./onlookers.ts";
import type { Plan } from "./plan.ts";
import type { Rng } from "./rng.ts";
import type { World } from "./world.ts";

export interface CallersParts {
  readonly world: Pick<World, "after" | "nowMs">;
  readonly recorder: Pick<Recorder, "now" | "add">;
  readonly rng: Rng;
  readonly plan: Pick<Plan, "leaseMs" | "latencyMs">;
  readonly scenario: Scenario;
  readonly healAtMs: number;
  /** Some client process that is alive, or null while there is none. */
  readonly client: (chance: Rng) => ClientProcess | null;
  /** Something happened that should never happen. */
  readonly unforeseen: (what: string, error: unknown) => void;
}

/** Errors that decide a call: it was refused, and asking again would be too. */
const refusals = ["KEY_CONFLICT", "RUN_ENDED", "RUN_BEGUN"] as const;

/** The store's time must tell two messages apart: they may come by way of two processes, and their order counts. */
const leastGapMs = 1;

/** These are waited for, for as long as it takes. */
const lasting: readonly ClientEntry["op"][] = ["result", "update", "stream"];

/**
 * The people outside: they start, signal, cancel and wait as the scenario says. Who gets no clear answer asks again, with the same
 * idempotency key, from whichever client process then lives.
 */
export class Callers {
  readonly #parts: CallersParts;
  /** Calls that began after the world had healed, and how many of them got an answer. */
  afterHealing = { asked: 0, answered: 0 };
  /** Those who will redrive a run once it has ended. */
  readonly #followers = new Set<{ readonly run: RunId }>();
  /** All runs that came to be. */
  readonly #attended = new Set<RunId>();
  /** Things still to be done. */
  #busy = 0;
  #calls = 0;
  /** Somebody redrives: an earlier try may still come, and find runs that have ended. */
  #mayRevive = false;

  constructor(parts: CallersParts) {
    this.#parts = parts;
    const { roots, batch, bulk } = parts.scenario;
    for (const root of roots) this.#plan(root);
    if (batch !== null) this.#later(batch.atMs, () => this.#startMany(batch));
    if (bulk !== null) this.#later(bulk.atMs, () => this.#bulk(bulk));
  }

  /** Nothing is left to do but to wait for results, and what these may lead to. */
  get isDone(): boolean {
    return this.#busy === 0 && (!this.#mayRevive || this.#parts.world.nowMs > this.#allArrivedAtMs);
  }

  /** From then on no call is still on its way that nobody waits for. */
  get #allArrivedAtMs(): number {
    return this.#parts.healAtMs + 2 * this.#parts.plan.latencyMs + leastGapMs;
  }

  /** Somebody waits for this run's end to act on it. */
  isFollowed(run: RunId): boolean {
    return [...this.#followers].some((follower) => follower.run === run);
  }

  #plan(root: RootPlan): void {
    const { program, startsAtMs, rival } = root;
    for (const atMs of startsAtMs) this.#later(atMs, () => this.#start(program, root));
    if (rival !== null) this.#later(rival.atMs, () => this.#start(rival.program, root));
  }

  #later(ms: number, act: () => Promise<unknown>): void {
    this.#busy += 1;
    this.#parts.world.after(ms, () => {
      act()
        .catch(this.#complain)
        .finally(() => {
          this.#busy -= 1;
        });
    });
  }

  readonly #complain = (error: unknown): void => {
    this.#parts.unforeseen("a caller got an error that nobody should get", error);
  };

  async #start(program: Program, root: RootPlan): Promise<void> {
    const { cancelAfterMs, terminateAfterMs, pause, reschedules, fork } = root;
    // The rival may be none that can begin anew.
    const redrives = root.redrives.map((plan) => ({
      ...plan,
      isFresh: plan.isFresh && program === root.program,
    }));
    const answered = await this.#ensure(program, root);
    const run = answered?.run;
    if (run === undefined || run === null) return;
    this.#follow(
      run,
      redrives.filter(({ when }) => when === "ended"),
    ).catch(this.#complain);
    if (cancelAfterMs !== null)
      this.#later(cancelAfterMs, () => this.#tell("cancel", run, (port) => port.cancel(run)));
    if (terminateAfterMs !== null) this.#later(terminateAfterMs, () => this.#terminate(run));
    if (fork !== null && program === root.program)
      this.#later(fork.afterMs, () => this.#fork(run, fork.from, `fork of ${root.key}`));
    if (pause !== null) this.#later(pause.afterMs, () => this.#pause(run, pause.forMs));
    for (const plan of reschedules) this.#later(plan.afterMs, () => this.#reschedule(run, plan));
    for (const { when, afterMs, isFresh } of redrives)
      if (when === "started") this.#later(afterMs, () => this.#redrive(run, isFresh));
  }

  #ensure(program: Program, { key, terms, greeting, ...root }: RootPlan): Promise<Answered | null> {
    if (greeting === null || program !== root.program)
      return this.#insist({ op: "start", run: null, key, value: null }, async ({ port }) => ({
        run: await port.start(program, key, terms),
      }));
    const value = greetingOf(greeting);
    return this.#insist({ op: "signalOrStart", run: null, key, value }, async ({ port }) => ({
      run: await port.signalOrStart(program, key, terms, greeting, value),
    }));
  }

  /**
   * Only what is paused by then is resumed: not what was held by somebody who died, and is paused later. So each is resumed once
   * more by itself, when no earlier try is on its way.
   */
  async #bulk({ kind, forMs }: BulkPlan): Promise<void> {
    await this.#all(kind);
    if (kind === "cancelAll") return;
    await this.#sleep(leastGapMs + forMs);
    await this.#all("resumeAll");
    await this.#sleep(this.#allArrivedAtMs - this.#parts.world.nowMs);
    for (const run of this.#attended) await this.#tell("resume", run, (port) => port.resume(run));
  }

  async #all(op: "cancelAll" | "pauseAll" | "resumeAll"): Promise<void> {
    await this.#insist({ op, run: null, key: null, value: null }, async ({ port }) => {
      await port[op]();
      return {};
    });
  }

  async #fork(run: RunId, from: string, key: string): Promise<void> {
    const answered = await this.#insist({ op: "fork", run, key, value: from }, async ({ port }) => {
      const forked = await port.fork(run, from, key);
      return forked === null ? { value: null } : { run: forked };
    });
    if (answered?.run !== undefined && answered.run !== null) this.#await(answered.run).catch(this.#complain);
  }

  async #startMany(batch: BatchPlan): Promise<void> {
    const asked: Asked = { op: "startMany", run: null, key: null, value: null };
    const answered = await this.#insist(asked, async ({ port }) => {
      const runs = await port.startMany(batch);
      return { value: runs.map((run, index) => ({ run, key: batch.items[index]?.key })) };
    });
    for (const { run } of (answered?.value ?? []) as readonly StartedItem[])
      this.#await(run).catch(this.#complain);
  }

  /** Waits for the run's end, and then redrives it unless it has completed, as often as this says. */
  async #follow(run: RunId, redrives: readonly RedrivePlan[]): Promise<void> {
    const follower = { run };
    if (redrives.length > 0) this.#followers.add(follower);
    for (const { afterMs, isForAll, isFresh, terminateAfterMs } of redrives) {
      const { status } = await this.#await(run);
      if (status === "completed" && !isFresh) break;
      await this.#sleep(afterMs);
      if (isForAll && !isFresh) await this.#redriveAll(status as StoppedStatus);
      else await this.#redrive(run, isFresh);
      if (terminateAfterMs !== null) this.#later(terminateAfterMs, () => this.#terminate(run));
    }
    this.#followers.delete(follower);
    await this.#await(run);
  }

  async #redriveAll(status: StoppedStatus): Promise<void> {
    await this.#insist({ op: "redriveAll", run: null, key: null, value: status }, async ({ port }) => {
      await port.redriveAll(status);
      return {};
    });
  }

  #redrive(run: RunId, isFresh: boolean): Promise<boolean> {
    return this.#tell("redrive", run, (port) => port.redrive(run, isFresh));
  }

  #terminate(run: RunId): Promise<boolean> {
    return this.#tell("terminate", run, (port) => port.terminate(run));
  }

  #reschedule(run: RunId, plan: ReschedulePlan): Promise<boolean> {
    const isIdle = plan.priority === null && plan.startInMs === null;
    const sent = isIdle ? { ...plan, startInMs: 0 } : plan;
    return this.#tell("reschedule", run, (port) => port.reschedule(run, sent));
  }

  async #pause(run: RunId, forMs: number | null): Promise<void> {
    const isPaused = await this.#tell("pause", run, (port) => port.pause(run));
    if (forMs === null) return;
    if (isPaused) {
      await this.#sleep(leastGapMs + forMs);
      await this.#tell("resume", run, (port) => port.resume(run));
    }
    // An earlier try of the pause may still be on its way until the world has healed, and find the run in another life.
    await this.#sleep(this.#allArrivedAtMs - this.#parts.world.nowMs);
    await this.#tell("resume", run, (port) => port.resume(run));
  }

  /** False: it is too late. */
  async #tell(op: Asked["op"], run: RunId, tell: (port: ClientPort) => Promise<void>): Promise<boolean> {
    const answered = await this.#insist({ op, run, key: null, value: null }, async ({ port }) => {
      await tell(port);
      return {};
    });
    return answered !== null;
  }

  /** A child came to be: somebody who has no business there may terminate it. */
  meddle(child: RunId): void {
    const { rng, plan, scenario } = this.#parts;
    if (!rng.chance(scenario.meddling)) return;
    this.#later(rng.next() * rng.pick([0.02, 0.2, 1]) * plan.leaseMs, () => this.#terminate(child));
  }

  /**
   * One sender for each name, so that the order in which signals are sent is known; another one in each life, who sends again
   * what the one before may not have brought to its end.
   */
  sendSignals(run: RunId, path: string): void {
    const { scenario, rng, plan } = this.#parts;
    for (const [name, values] of scenario.signals.get(path) ?? []) {
      if (scenario.roots.some(({ greeting }) => greeting === name)) continue;
      const pauses = values.map(() => rng.next() * rng.pick([0, 0.1, 2]) * plan.leaseMs);
      const repeats = values.map(() => rng.chance(0.3));
      this.#later(0, async () => {
        for (const [index, value] of values.entries()) {
          await this.#sleep(pauses[index] ?? 0);
          const asked: Asked = { op: "signal", run, key: value, value: name };
          const send = (): Promise<Answered | null> =>
            this.#insist(asked, async ({ port }) => {
              await port.signal(run, name, value, value);
              return {};
            });
          if ((await send()) === null) return;
          if (repeats[index] === true) await send();
          await this.#sleep(leastGapMs);
        }
      });
    }
  }

  /** Somebody comes by again and again, and resumes a run whose code may have paused it. */
  patrol(run: RunId, program: Program): void {
    const { rng, plan } = this.#parts;
    const ops = chainOf(program).flatMap(({ ops }) => [...walk(ops, false)]);
    if (!ops.some(({ kind }) => kind === "pause")) return;
    const comeBy = async (): Promise<void> => {
      do await this.#sleep(rng.between(0.1, 1) * plan.leaseMs);
      while (await this.#tell("resume", run, (port) => port.resume(run)));
    };
    comeBy().catch(this.#complain);
  }

  /** Those who look at what the run shows, and ask it for something. */
  attend(run: RunId, program: Program): void {
    this.#attended.add(run);
    const { rng, plan, scenario } = this.#parts;
    look({
      run,
      program,
      updates: scenario.updates.get(program.path) ?? [],
      rng,
      longestMs: plan.leaseMs,
      later: (ms, act) => this.#later(ms, act),
      // Whoever waits for an answer that may never come keeps nobody else from leaving.
      ask: (asked, ask) => void this.#insist(asked, ({ port }) => ask(port)).catch(this.#complain),
    });
  }

  async #await(run: RunId): Promise<SeenEnd> {
    const asked: Asked = { op: "result", run, key: null, value: null };
    const answered = await this.#insist(asked, async ({ port }) => ({ value: await port.result(run) }));
    return answered?.value as SeenEnd;
  }

  /** Asks until the answer is clear; null when it is a refusal. */
  async #insist(asked: Asked, ask: (client: ClientProcess) => Promise<Answered>): Promise<Answered | null> {
    const { rng, plan } = this.#parts;
    this.#mayRevive ||= asked.op === "redrive" || asked.op === "redriveAll";
    for (;;) {
      const client = this.#parts.client(rng);
      const answered = client === null ? "unclear" : await this.#ask(client, asked, ask);
      if (answered !== "unclear") return answered;
      await this.#sleep(rng.next() * plan.leaseMs * 0.3);
    }
  }

  async #ask(
    client: ClientProcess,
    asked: Asked,
    ask: (client: ClientProcess) => Promise<Answered>,
  ): Promise<Answered | null | "unclear"> {
    const { recorder, world, healAtMs } = this.#parts;
    const call = this.#calls++;
    const note = (type: ClientEntry["type"], answered: Answered): void => {
      recorder.add({
        by: "client",
        at: recorder.now,
        process: client.name,
        type,
        call,
        ...asked,
        ...answered,
      });
    };
    const counts = world.nowMs >= healAtMs && !lasting.includes(asked.op);
    if (counts) this.afterHealing.asked += 1;
    note("invoke", {});
    try {
      const answered = await Promise.race([ask(client), client.died.then(() => null)]);
      note(answered === null ? "info" : "ok", answered ?? {});
      if (answered !== null && counts) this.afterHealing.answered += 1;
      return answered ?? "unclear";
    } catch (error) {
      const isRefused = refusals.some((code) => PawlError.is(error, code));
      if (!isRefused && !PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
      if (isRefused && counts) this.afterHealing.answered += 1;
      note(isRefused ? "fail" : "info", { value: (error as PawlError).code });
      return isRefused ? null : "unclear";
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#parts.world.after(ms, resolve);
    });
  }
}
