import { isDeepStrictEqual } from "node:util";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { StoreHarness } from "../../packages/pawl/test/conformance/harness.ts";
import { createMemoryHarness } from "../../packages/pawl/test/memory-harness.ts";
import { describeDifferences } from "../../packages/pawl/test/pairs/difference.ts";
import { describeViolation } from "../hist/verdict.ts";
import { checkSoundness } from "./check-soundness.ts";
import type { HeldStore } from "./held-store.ts";
import { apply, type Operation } from "./operation.ts";
import { isSkipping, mayWait } from "./pair-rules.ts";

type Answers = readonly unknown[];

/** One operation, or two at once. */
export type Turn = readonly [Operation] | readonly [Operation, Operation];

export interface State {
  readonly now: number;
  readonly snapshot: StoreSnapshot;
}

interface Outcome {
  /** In the order of the turn's operations. */
  readonly answers: readonly Answers[];
  readonly snapshot: StoreSnapshot;
}

/** What became of a turn's operations one after the other. */
interface Serial extends Outcome {
  readonly memory: StoreHarness;
  readonly order: readonly Operation[];
}

export interface Played {
  /** What Postgres did and memory does in no order; null where there is nothing of that kind. */
  readonly difference: string | null;
  readonly answers: readonly Answers[];
  /** Null: it is not known what it should be, and nothing more can be compared. */
  readonly state: State | null;
}

/** What two operations at once may come to; the second of them may wait for the first. */
export const pairEnds = [
  "as one after the other",
  "as in the other order",
  "the second passed over something, and found it later",
  "the second waited",
] as const;
type PairEnd = (typeof pairEnds)[number] | "the second passed over something, and took something else";

/** The same turns on a memory store and on Postgres. Two operations at once must come to what they come to in turn. */
export class Match {
  /** How often two operations at once came to what. */
  readonly pairs = new Map<PairEnd, number>();
  readonly #held: HeldStore;
  #memory = createMemoryHarness();
  #startAt = 0;
  /** What the memory store has done, in order. */
  #done: Operation[] = [];

  constructor(held: HeldStore) {
    this.#held = held;
  }

  /** Two empty stores, at an instant that is always the same. */
  async begin(): Promise<State> {
    await this.#held.harness.clear();
    this.#startAt = await this.#held.harness.store.now();
    this.#memory = createMemoryHarness(this.#startAt);
    this.#done = [];
    return this.#read();
  }

  /** `lookEvery`: of so many single operations, one is followed by a look at everything the stores hold. */
  play(turn: Turn, lookEvery: number): Promise<Played> {
    const [first, second] = turn;
    return second === undefined ? this.#playOne(first, lookEvery) : this.#playBoth([first, second]);
  }

  async #playOne(operation: Operation, lookEvery: number): Promise<Played> {
    const { harness } = this.#held;
    this.#done.push(operation);
    const [expected, answers] = await Promise.all([
      apply(this.#memory, operation),
      apply(harness, operation),
    ]);
    const state = await this.#read();
    const looks = this.#done.length % lookEvery === 0 || ordersOf(operation).length > 0;
    const snapshot = looks ? await harness.snapshot() : state.snapshot;
    const outcome = { answers: [answers], snapshot };
    const allowed = { answers: [expected], snapshot: state.snapshot };
    if (isEqual(outcome, allowed)) return { difference: null, answers: [answers], state };
    return (
      (await this.#findOrder(operation, outcome)) ?? {
        difference: describeDifferences(outcome, [allowed]),
        answers: [answers],
        state,
      }
    );
  }

  /** Calls that are made at once may be carried out in any order. */
  async #findOrder(operation: Operation, outcome: Outcome): Promise<Played | null> {
    for (const { ordered, places } of ordersOf(operation)) {
      this.#done.pop();
      const serial = await this.#inTurn([ordered], [ordered]);
      this.#done.push(operation);
      const answers = places.map((place) => serial.answers[0]?.[place]);
      if (!isEqual(outcome, { answers: [answers], snapshot: serial.snapshot })) continue;
      this.#done.pop();
      return this.#follow(serial, outcome.answers);
    }
    return null;
  }

  async #playBoth(turn: readonly [Operation, Operation]): Promise<Played> {
    const [first, second] = turn;
    const both = await this.#held.applyBoth(first, second);
    if (both.hasWaited) this.#count("the second waited");
    const answers = [both.first, both.second];
    if (both.hasWaited && !mayWait(first, second))
      return { difference: `${second.kind} waited for ${first.kind}`, answers, state: null };
    const outcome = { answers, snapshot: await this.#held.harness.snapshot() };
    // Nearly always it is so: no need of another store.
    const inOrder = await this.#carryOut(this.#memory, turn, [first, second]);
    if (isEqual(outcome, inOrder)) {
      this.#count("as one after the other");
      return this.#follow(inOrder, answers);
    }
    const inOtherOrder = await this.#inTurn(turn, [second, first]);
    if (isEqual(outcome, inOtherOrder)) {
      this.#count("as in the other order");
      return this.#follow(inOtherOrder, answers);
    }
    if (isSkipping(second)) return this.#repeatSecond(turn, outcome);
    const allowed = [inOrder, inOtherOrder].map(({ answers, snapshot }) => ({ answers, snapshot }));
    return { difference: describeDifferences(outcome, allowed), answers, state: null };
  }

  /** It may have passed over what the first held: made again, it finds that. */
  async #repeatSecond(
    turn: readonly [Operation, Operation],
    { answers, snapshot }: Outcome,
  ): Promise<Played> {
    const [first, second] = turn;
    await apply(this.#held.harness, second);
    const repeated = await this.#held.harness.snapshot();
    const unsound = [...checkSoundness(snapshot), ...checkSoundness(repeated)];
    if (unsound.length > 0)
      return { difference: unsound.map(describeViolation).join("\n"), answers, state: null };
    const orders = [
      [first, second],
      [second, first],
      [first, second, second],
      [second, first, second],
    ];
    for (const order of orders) {
      const serial = await this.#inTurn(turn, order);
      if (!isDeepStrictEqual(repeated, serial.snapshot)) continue;
      this.#count("the second passed over something, and found it later");
      return this.#follow(serial, answers);
    }
    this.#count("the second passed over something, and took something else");
    return { difference: null, answers, state: null };
  }

  #count(end: PairEnd): void {
    this.pairs.set(end, (this.pairs.get(end) ?? 0) + 1);
  }

  /** Goes on from there. */
  async #follow({ memory, order }: Serial, answers: readonly Answers[]): Promise<Played> {
    this.#memory = memory;
    this.#done.push(...order);
    return { difference: null, answers, state: await this.#read() };
  }

  /** In a store that has done the same as ours so far. */
  async #inTurn(turn: Turn, order: readonly Operation[]): Promise<Serial> {
    const memory = createMemoryHarness(this.#startAt);
    for (const operation of this.#done) await apply(memory, operation);
    return this.#carryOut(memory, turn, order);
  }

  async #carryOut(memory: StoreHarness, turn: Turn, order: readonly Operation[]): Promise<Serial> {
    const answers = new Map<Operation, Answers>();
    for (const operation of order) answers.set(operation, await apply(memory, operation));
    const inTurn = turn.map((operation) => answers.get(operation) ?? []);
    return { memory, order, answers: inTurn, snapshot: await memory.snapshot() };
  }

  async #read(): Promise<State> {
    return { now: await this.#memory.store.now(), snapshot: await this.#memory.snapshot() };
  }
}

interface Ordered {
  readonly ordered: Operation;
  /** Where each of the original's calls stands in it. */
  readonly places: readonly number[];
}

/**
 * The other orders of calls that are made at once and of which one may change what another finds: a child that is cancelled before it has
 * begun wakes its parent, which may be told something, too.
 */
function ordersOf(operation: Operation): readonly Ordered[] {
  if (operation.kind !== "tell" || operation.calls.length < 2) return [];
  const { kind, calls } = operation;
  const [, ...others] = permutations(calls.map((_, index) => index));
  return others.map((order) => ({
    ordered: { kind, calls: order.map((index) => calls[index]!) },
    places: calls.map((_, index) => order.indexOf(index)),
  }));
}

/** The first is as given. */
function permutations(items: readonly number[]): readonly (readonly number[])[] {
  if (items.length < 2) return [items];
  return items.flatMap((item, index) =>
    permutations([...items.slice(0, index), ...items.slice(index + 1)]).map((rest) => [item, ...rest]),
  );
}

function isEqual(one: Outcome, other: Outcome): boolean {
  return isDeepStrictEqual(one.answers, other.answers) && isDeepStrictEqual(one.snapshot, other.snapshot);
}
