/** A set kept in order. Items that compare as 0 are the same item. */
export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #items: T[] = [];

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  add(item: T): void {
    const place = this.#placeOf(item);
    if (!this.#isAt(place, item)) this.#items.splice(place, 0, item);
  }

  remove(item: T): void {
    const place = this.#placeOf(item);
    if (this.#isAt(place, item)) this.#items.splice(place, 1);
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** All items in order, or those strictly behind `after`. A copy: the list may change meanwhile. */
  list(after?: T | null, limit = Infinity): T[] {
    let begin = 0;
    if (after !== undefined && after !== null) {
      begin = this.#placeOf(after);
      if (this.#isAt(begin, after)) begin += 1;
    }
    return this.#items.slice(begin, begin + limit);
  }

  /** Where the item is, or would be. */
  #placeOf(item: T): number {
    let low = 0;
    let high = this.#items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const found = this.#items[middle] as T;
      if (this.#compare(found, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isAt(place: number, item: T): boolean {
    return place < this.#items.length && this.#compare(this.#items[place] as T, item) === 0;
  }
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
