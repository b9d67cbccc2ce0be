/** In this order. Most lists that come here have it, and are answered as they are. */
export function sortedBy<Item>(
  compare: (a: Item, b: Item) => number,
  items: readonly Item[],
): readonly Item[] {
  for (let index = 1; index < items.length; index++)
    if (compare(items[index - 1] as Item, items[index] as Item) > 0) return items.toSorted(compare);
  return items;
}
