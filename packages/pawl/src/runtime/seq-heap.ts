import type { RunEvent } from "../core/event.ts";

/** Events that give the one with the lowest `seq` first. */
export interface SeqHeap {
  peek(): RunEvent | null;
  take(): RunEvent | null;
  add(event: RunEvent): void;
}

/** A binary heap: a parent stands before its two children. */
export function createSeqHeap(): SeqHeap {
  const items: RunEvent[] = [];

  const goesBefore = (a: number, b: number): boolean =>
    (items[a]?.seq ?? Infinity) < (items[b]?.seq ?? Infinity);
  const swap = (a: number, b: number): void => {
    const [first, second] = [items[a], items[b]];
    if (first === undefined || second === undefined) return;
    items[a] = second;
    items[b] = first;
  };

  return {
    peek: () => items[0] ?? null,
    add(event) {
      items.push(event);
      let at = items.length - 1;
      while (at > 0 && goesBefore(at, (at - 1) >> 1)) {
        swap(at, (at - 1) >> 1);
        at = (at - 1) >> 1;
      }
    },
    take() {
      swap(0, items.length - 1);
      const taken = items.pop() ?? null;
      let at = 0;
      for (;;) {
        const child = goesBefore(2 * at + 2, 2 * at + 1) ? 2 * at + 2 : 2 * at + 1;
        if (!goesBefore(child, at)) return taken;
        swap(child, at);
        at = child;
      }
    },
  };
}
