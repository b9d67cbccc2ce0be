import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Program } from "../gen/program.ts";
import type { RootPlan, Scenario } from "../gen/scenario.ts";
import type { SeenEnd } from "../hist/check-facts.ts";
import type { ClientEntry, Recorder } from "../hist/record.ts";
import type { Plan } from "./plan.ts";
import type { Rng } from "./rng.ts";
import type { World } from "./world.ts";

/** What callers can ask of Pawl, from inside a process that may die. */
export interface ClientPort {
  start(program: Program, key: string): Promise<RunId>;
  signal(run: RunId, name: string, value: string, key: string): Promise<void>;
  cancel(run: RunId): Promise<void>;
  pause(run: RunId): Promise<void>;
  resume(run: RunId): Promise<void>;
  result(run: RunId): Promise<SeenEnd>;
}

export interface ClientProcess {
  readonly name: string;
  readonly port: ClientPort;
  /** Resolves when the process dies. */
  readonly died: Promise<void>;
}

export interface CallersParts {
  readonly world: World;
  readonly recorder: Recorder;
  readonly rng: Rng;
  readonly plan: Plan;
  readonly scenario: Scenario;
  readonly healAtMs: number;
  /** Some client process that is alive, or null while there is none. */
  readonly client: (chance: Rng) => ClientProcess | null;
  /** Something happened that should never happen. */
  readonly unforeseen: (what: string, error: unknown) => void;
}

/** Errors that decide a call: it was refused, and asking again would be too. */
const refusals = ["KEY_CONFLICT", "RUN_ENDED"] as const;

/** The store's time must tell two messages apart: they may come by way of two processes, and their order counts. */
const leastGapMs = 1;

type Asked = Pick<ClientEntry, "op" | "run" | "key" | "value">;
type Answered = Partial<Pick<ClientEntry, "run" | "value">>;

/**
 * The people outside: they start, signal, cancel and wait as the scenario says. Who gets no clear answer asks again, with the same
 * idempotency key, from whichever client process then lives.
 */
export class Callers {
  readonly #parts: CallersParts;
  /** Cancels that were acknowledged. */
  readonly cancelled = new Set<RunId>();
  /** Calls that began after the world had healed, and how many of them got an answer. */
  afterHealing = { asked: 0, answered: 0 };
  /** Things still to be done. */
  #busy = 0;
  #calls = 0;

  constructor(parts: CallersParts) {
    this.#parts = parts;
    for (const root of parts.scenario.roots) this.#plan(root);
  }

  /** Nothing is left to do but to wait for results. */
  get isDone(): boolean {
    return this.#busy === 0;
  }

  #plan(root: RootPlan): void {
    const { program, startsAtMs, rival } = root;
    for (const atMs of startsAtMs) this.#later(atMs, () => this.#start(program, root));
    if (rival !== null) this.#later(rival.atMs, () => this.#start(rival.program, root));
  }

  #later(ms: number, act: () => Promise<void>): void {
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

  async #start(program: Program, { key, cancelAfterMs, pause }: RootPlan): Promise<void> {
    const asked: Asked = { op: "start", run: null, key, value: null };
    const answered = await this.#insist(asked, async ({ port }) => ({ run: await port.start(program, key) }));
    const run = answered?.run;
    if (run === undefined || run === null) return;
    this.#await(run).catch(this.#complain);
    if (cancelAfterMs !== null) this.#later(cancelAfterMs, () => this.#cancel(run));
    if (pause !== null) this.#later(pause.afterMs, () => this.#pause(run, pause.forMs));
  }

  async #cancel(run: RunId): Promise<void> {
    if (await this.#tell("cancel", run, (port) => port.cancel(run))) this.cancelled.add(run);
  }

  async #pause(run: RunId, forMs: number): Promise<void> {
    if (!(await this.#tell("pause", run, (port) => port.pause(run)))) return;
    await this.#sleep(leastGapMs + forMs);
    if (!(await this.#tell("resume", run, (port) => port.resume(run)))) return;
    // An earlier try of the pause may still be on its way until the world has healed.
    await this.#sleep(this.#parts.healAtMs + leastGapMs - this.#parts.world.nowMs);
    await this.#tell("resume", run, (port) => port.resume(run));
  }

  /** False: the run has ended. */
  async #tell(
    op: "cancel" | "pause" | "resume",
    run: RunId,
    tell: (port: ClientPort) => Promise<void>,
  ): Promise<boolean> {
    const answered = await this.#insist({ op, run, key: null, value: null }, async ({ port }) => {
      await tell(port);
      return {};
    });
    return answered !== null;
  }

  /** One sender for each name, so that the order in which signals are sent is known. */
  sendSignals(run: RunId, path: string): void {
    const { scenario, rng, plan } = this.#parts;
    for (const [name, values] of scenario.signals.get(path) ?? []) {
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

  async #await(run: RunId): Promise<void> {
    const asked: Asked = { op: "result", run, key: null, value: null };
    await this.#insist(asked, async ({ port }) => ({ value: await port.result(run) }));
  }

  /** Asks until the answer is clear; null when it is a refusal. */
  async #insist(asked: Asked, ask: (client: ClientProcess) => Promise<Answered>): Promise<Answered | null> {
    const { rng, plan } = this.#parts;
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
    // A result is waited for, for as long as it takes.
    const counts = world.nowMs >= healAtMs && asked.op !== "result";
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
