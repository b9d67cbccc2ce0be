import { EventHeap, type PlannedEvent } from "./event-heap.ts";

const settled = Promise.resolve();

/**
 * Calls back once every promise that can continue has done so. Ticks are taken when no microtask is left, and cost less
 * than a turn of the event loop, which nothing here needs.
 */
function whenAtRest(act: () => void): void {
  void settled.then(() => process.nextTick(act));
}

/** Time itself, and the list of what will happen. One event happens at a time, each followed until the code rests. */
export class World {
  readonly #heap = new EventHeap();
  #nowMs: number;
  #planned = 0;
  #underWay = 0;

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  /** True time in ms with fractions: what happens within one ms still has an order. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Plans an event; the returned function calls it off. */
  after(ms: number, act: () => void): () => void {
    const event: PlannedEvent = { at: this.#nowMs + Math.max(0, ms), order: this.#planned++, act };
    this.#heap.push(event);
    return () => {
      event.act = null;
    };
  }

  /** Plans an event by which something that is under way arrives. */
  convey(ms: number, act: () => void): void {
    this.#underWay += 1;
    this.after(ms, () => {
      this.#underWay -= 1;
      act();
    });
  }

  /** No call, answer or hint is under way, and nobody is at work. */
  get isQuiet(): boolean {
    return this.#underWay === 0;
  }

  /** Lets events happen until `isOver` says so, nothing is left to happen, or this instant has come. */
  runUntil(untilMs: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const happen = (): void => {
        const event = isOver() ? undefined : this.#next(untilMs);
        if (event === undefined) return resolve();
        this.#nowMs = Math.max(this.#nowMs, event.at);
        event.act?.();
        whenAtRest(happen);
      };
      whenAtRest(happen);
    });
  }

  /** The next event that was not called off, unless it lies beyond this instant. */
  #next(untilMs: number): PlannedEvent | undefined {
    for (;;) {
      const event = this.#heap.peek();
      if (event === undefined || event.at > untilMs) return undefined;
      this.#heap.pop();
      if (event.act !== null) return event;
    }
  }
}
