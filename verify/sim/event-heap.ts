/** Something that will happen. Two things of one instant happen in the order in which they were planned. */
export interface PlannedEvent {
  readonly at: number;
  readonly order: number;
  /** Null once it has been called off. */
  act: (() => void) | null;
}

function isBefore(a: PlannedEvent, b: PlannedEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** A binary heap, earliest event first. */
export class EventHeap {
  readonly #events: PlannedEvent[] = [];

  push(event: PlannedEvent): void {
    const events = this.#events;
    let index = events.push(event) - 1;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = events[parentIndex] as PlannedEvent;
      if (!isBefore(event, parent)) break;
      events[index] = parent;
      index = parentIndex;
    }
    events[index] = event;
  }

  peek(): PlannedEvent | undefined {
    return this.#events[0];
  }

  pop(): PlannedEvent | undefined {
    const events = this.#events;
    const first = events[0];
    const last = events.pop();
    if (first === undefined || last === undefined || events.length === 0) return first;
    let index = 0;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= events.length) break;
      const right = events[childIndex + 1];
      if (right !== undefined && isBefore(right, events[childIndex] as PlannedEvent)) childIndex++;
      const child = events[childIndex] as PlannedEvent;
      if (!isBefore(child, last)) break;
      events[index] = child;
      index = childIndex;
    }
    events[index] = last;
    return first;
  }
}
