import type { RunEvent } from "../core/event.ts";

/** Events that give the one with the lowest `seq` first. */
export class SeqHeap {
  /** Most often the only one. */
  #first: RunEvent | null = null;
  /** The others, as a binary heap: a parent stands before its two children. */
  #others: RunEvent[] | null = null;

  peek(): RunEvent | null {
    return this.#first;
  }

  add(event: RunEvent): void {
    const first = this.#first;
    if (first === null || event.seq < first.seq) this.#first = event;
    if (first !== null) this.#addOther(first === this.#first ? event : first);
  }

  take(): RunEvent | null {
    const taken = this.#first;
    this.#first = this.#others === null ? null : this.#takeOther(this.#others);
    return taken;
  }

  #addOther(event: RunEvent): void {
    const others = (this.#others ??= []);
    others.push(event);
    let at = others.length - 1;
    while (at > 0 && goesBefore(others, at, (at - 1) >> 1)) {
      swap(others, at, (at - 1) >> 1);
      at = (at - 1) >> 1;
    }
  }

  #takeOther(others: RunEvent[]): RunEvent | null {
    swap(others, 0, others.length - 1);
    const taken = others.pop() ?? null;
    let at = 0;
    for (;;) {
      const child = goesBefore(others, 2 * at + 2, 2 * at + 1) ? 2 * at + 2 : 2 * at + 1;
      if (!goesBefore(others, child, at)) return taken;
      swap(others, child, at);
      at = child;
    }
  }
}

function goesBefore(events: readonly RunEvent[], a: number, b: number): boolean {
  return (events[a]?.seq ?? Infinity) < (events[b]?.seq ?? Infinity);
}

function swap(events: RunEvent[], a: number, b: number): void {
  const [first, second] = [events[a], events[b]];
  if (first === undefined || second === undefined) return;
  events[a] = second;
  events[b] = first;
}
