import { append } from "../core/append.ts";

/** Something that runs, as the list of all that do knows it. */
export interface Listed {
  readonly key: string;
  /** Where it stands in the list. */
  place: number;
  /** Counts those that were entered. */
  order: number;
}

/** What runs at this moment. A map makes its tables anew for each that comes alone, and goes. */
export class RunningList<Item extends Listed> {
  #items: Item[] = [];
  #entered = 0;

  get size(): number {
    return this.#items.length;
  }

  has(item: Item): boolean {
    return this.#items[item.place] === item;
  }

  find(key: string): Item | undefined {
    return this.#items.find((item) => item.key === key);
  }

  /** In the order entered. */
  all(): readonly Item[] {
    return this.#items.toSorted((a, b) => a.order - b.order);
  }

  enter(item: Item): void {
    item.place = this.#items.length;
    item.order = this.#entered++;
    this.#items = append(this.#items, item);
  }

  leave(item: Item): void {
    if (!this.has(item)) return;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    last.place = item.place;
    this.#items[item.place] = last;
  }

  clear(): void {
    this.#items = [];
  }
}
