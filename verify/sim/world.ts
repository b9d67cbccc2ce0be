import { EventHeap } from "./event-heap.ts";

/**
 * Lets every promise that can continue do so. Ticks are taken when no microtask is left, and cost less than a turn of the
 * event loop, which nothing here needs.
 */
function drainMicrotasks(): Promise<void> {
  return new Promise((resolve) => {
    queueMicrotask(() => process.nextTick(resolve));
  });
}

/** Time itself, and the list of what will happen. One event happens at a time, each followed until the code rests. */
export class World {
  readonly #heap = new EventHeap();
  #nowMs: number;
  #planned = 0;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  /** True time in ms with fractions: what happens within one ms still has an order. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Plans an event; the returned function calls it off. */
  after(ms: number, act: () => void): () => void {
    const event = { at: this.#nowMs + Math.max(0, ms), order: this.#planned++, act: act as (() => void) | null };
    this.#heap.push(event);
    return () => {
      event.act = null;
    };
  }

  /** Lets events happen until `isOver` says so, nothing is left to happen, or this instant has come. */
  async runUntil(untilMs: number, isOver: () => boolean): Promise<void> {
    await drainMicrotasks();
    while (!isOver()) {
      const event = this.#heap.peek();
      if (event === undefined || event.at > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return;
      }
      this.#heap.pop();
      if (event.act === null) continue;
      this.#nowMs = Math.max(this.#nowMs, event.at);
      event.act();
      await drainMicrotasks();
    }
  }
}
