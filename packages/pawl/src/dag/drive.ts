import { PawlError } from "../core/error.ts";
import type { ShownState } from "../core/graph-state.ts";
import { listFault } from "../core/options.ts";
import type { WorkflowRef } from "../core/workflow-ref.ts";
import type { Context } from "../runtime/context.ts";
import { isChildEnd, oneError, tellFailure, tellSome } from "./failure.ts";
import { Outcomes, type Outcome } from "./outcomes.ts";
import type { EachWork, Plan, PlannedNode } from "./plan.ts";
import { showGraph, showNode } from "./showing.ts";
import { createVerdict, type Verdict } from "./verdict.ts";

/**
 * - `fail`: the graph fails at once, and what runs is cancelled.
 * - `pause`: nothing new begins; once what runs has ended, the run waits for an operator. When it is resumed, what failed is
 *   begun anew.
 * - `continue`: everything that still can runs; then the graph fails.
 */
export type OnError = "fail" | "pause" | "continue";

/** Runs the nodes of a graph, each as soon as it can, and answers what the graph returns. @throws {PawlError} `NODE_FAILED` */
export function drive(ctx: Context, plan: Plan, input: unknown, onError: OnError): Promise<unknown> {
  return new Drive(ctx, plan, input, onError).run();
}

class Drive {
  readonly #ctx: Context;
  readonly #plan: Plan;
  readonly #onError: OnError;
  readonly #outcomes: Outcomes;
  readonly #verdict: Verdict;
  readonly #shown: Promise<void>[] = [];
  /** What the items of a node have brought that it keeps when it is begun anew. */
  readonly #brought = new Map<number, Map<number, unknown>>();
  /** Failed, and will be begun anew. */
  #failed: { readonly node: PlannedNode; readonly error: Error }[] = [];
  /** Could begin, and do not yet. */
  #held: PlannedNode[] = [];
  #running = 0;
  #isOver = false;
  #end: () => void = () => {};
  #abort: (error: unknown) => void = () => {};

  constructor(ctx: Context, plan: Plan, input: unknown, onError: OnError) {
    this.#ctx = ctx;
    this.#plan = plan;
    this.#onError = onError;
    this.#outcomes = new Outcomes(plan, input);
    this.#verdict = createVerdict(plan);
  }

  async run(): Promise<unknown> {
    const ended = new Promise<void>((resolve, reject) => {
      this.#end = resolve;
      this.#abort = reject;
    });
    this.#shown.push(...showGraph(this.#ctx, this.#plan));
    this.#advance(this.#plan.nodes.filter((node) => this.#outcomes.canBegin(node)));
    try {
      await ended;
    } finally {
      this.#isOver = true;
    }
    await Promise.all(this.#shown);
    if (this.#verdict.isLost()) throw this.#verdict.failure();
    return this.#outcomes.fill(this.#plan.returned);
  }

  /** Begins or skips these, and whom that decides; then sees whether anything is left to wait for. */
  #advance(decided: readonly PlannedNode[]): void {
    const open = [...decided];
    for (const node of open) {
      if (this.#isOver) return;
      const skipped = this.#begin(node);
      if (skipped !== null) open.push(...this.#note(node, skipped));
    }
    if (this.#isOver || this.#running > 0) return;
    if (this.#failed.length > 0) void this.#pause();
    else this.#end();
  }

  /** How it ended, where it is over at once. */
  #begin(node: PlannedNode): Outcome | null {
    if (!this.#outcomes.canBegin(node)) return this.#outcomes.skipped(node);
    if (this.#failed.length > 0) {
      this.#held.push(node);
      return null;
    }
    try {
      if (!this.#isWanted(node))
        return { status: "skipped", reason: "its condition is not met", isByChoice: true };
    } catch (error) {
      return { status: "failed", error: error as Error };
    }
    this.#running += 1;
    this.#ctx
      .scope(node.name, (inner) => this.#perform(node, inner))
      .then(
        (value) => this.#settle(node, { status: "completed", value }),
        (error: unknown) => this.#settle(node, { status: "failed", error: error as Error }),
      );
    return null;
  }

  #settle(node: PlannedNode, outcome: Outcome): void {
    this.#running -= 1;
    if (this.#isOver) return;
    if (outcome.status === "failed" && this.#isOwnEnd(outcome.error)) this.#abort(outcome.error);
    else this.#advance(this.#note(node, outcome));
  }

  /** Whom this decides. */
  #note(node: PlannedNode, outcome: Outcome): readonly PlannedNode[] {
    this.#show(node, outcome);
    if (outcome.status === "failed" && this.#onError === "pause" && this.#verdict.minds(node.index)) {
      this.#failed.push({ node, error: outcome.error });
      return [];
    }
    const decided = this.#outcomes.note(node.index, outcome);
    if (outcome.status === "completed") return decided;
    this.#verdict.lose(node.index, outcome);
    if (this.#onError !== "fail" || !this.#verdict.isLost()) return decided;
    this.#isOver = true;
    this.#end();
    return [];
  }

  /** What the node's children do not tell. */
  #show(node: PlannedNode, outcome: Outcome): void {
    const isToldByChild =
      outcome.status === "completed" || (outcome.status === "failed" && isChildEnd(outcome.error));
    if (isToldByChild && node.work.kind === "one") return;
    this.#shown.push(showNode(this.#ctx, node, shownOf(outcome)));
  }

  async #pause(): Promise<void> {
    const reasons = this.#failed.map(({ node, error }) => `"${node.name}" failed: ${tellFailure(error)}`);
    for (const node of this.#held) this.#shown.push(showNode(this.#ctx, node, { state: "ready" }));
    try {
      await this.#ctx.pause(tellSome(reasons));
    } catch (error) {
      this.#abort(error);
      return;
    }
    const again = [...this.#failed.map(({ node }) => node), ...this.#held];
    this.#failed = [];
    this.#held = [];
    this.#advance(again);
  }

  /** The run itself is told to stop, and not one of its children. */
  #isOwnEnd(error: unknown): boolean {
    return PawlError.is(error) && error.details["runId"] === this.#ctx.run.id;
  }

  #isWanted({ name, when, work }: PlannedNode): boolean {
    if (when === null) return true;
    const input = work.kind === "one" ? this.#outcomes.fill(work.input) : this.#itemsOf(work);
    const answer = when(input as never);
    if (typeof answer === "boolean") return answer;
    // Nobody else waits for what an async function throws, and that would end the process.
    void Promise.resolve(answer).catch(() => {});
    throw new PawlError(
      "INVALID_OPTION",
      `The option "when" of the node "${name}" must answer true or false at once: it must not be async.`,
    );
  }

  #itemsOf(work: EachWork): readonly unknown[] {
    if (work.kind === "list") return work.items;
    const items = this.#outcomes.fill(work.items);
    const fault = listFault(items);
    if (fault === null) return items as readonly unknown[];
    throw new PawlError("INVALID_OPTION", `What a node has items of ${fault}.`);
  }

  #perform(node: PlannedNode, ctx: Context): Promise<unknown> {
    const { work } = node;
    if (work.kind === "one") return this.#call(node, ctx, this.#outcomes.fill(work.input));
    return this.#performEach(node, work, ctx);
  }

  /** A child for each item that has not completed, some at a time. Once one has failed no other begins. */
  async #performEach(node: PlannedNode, work: EachWork, ctx: Context): Promise<unknown> {
    const items = this.#itemsOf(work);
    const brought = this.#brought.get(node.index) ?? new Map<number, unknown>();
    this.#brought.set(node.index, brought);
    const missing = [...items.keys()].filter((index) => !brought.has(index)).values();
    const failures: Error[] = [];
    const performSome = async (): Promise<void> => {
      for (const index of missing) {
        const source = work.kind === "list" ? work.inputs[index] : work.input;
        const input = this.#outcomes.fill(source, items[index]);
        try {
          brought.set(index, await ctx.scope(String(index), (inner) => this.#call(node, inner, input)));
        } catch (error) {
          failures.push(error as Error);
        }
        if (failures.length > 0) return;
      }
    };
    await Promise.all(Array.from({ length: Math.min(work.concurrency, items.length) }, performSome));
    const failure = oneError(failures);
    if (failure !== undefined) throw failure;
    return items.map((_, index) => brought.get(index));
  }

  #call({ task, options }: PlannedNode, ctx: Context, input: unknown): Promise<unknown> {
    return ctx.call(task as WorkflowRef<unknown>, input, options);
  }
}

function shownOf(outcome: Outcome): ShownState {
  switch (outcome.status) {
    case "completed":
      return { state: "completed" };
    case "failed":
      return { state: "failed", reason: tellFailure(outcome.error) };
    case "skipped":
      return { state: "skipped", reason: outcome.reason };
    default:
      return outcome satisfies never;
  }
}
