/**
 * The list with this item at its end: for lists that mostly have one, and of which there are many. A list that grows makes room for
 * sixteen more, which is most of what it takes.
 */
export function append<Item>(list: Item[], item: Item): Item[] {
  if (list.length === 0) return [item];
  list.push(item);
  return list;
}
