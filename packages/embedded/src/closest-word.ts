/** The word of `words` that takes the fewest edits to become `word`. */
export function closestWord(word: string, words: readonly string[]): string | undefined {
  const ranked = words.map((known) => ({
    known,
    edits: countEdits(word.toLowerCase(), known.toLowerCase()),
  }));
  ranked.sort((a, b) => a.edits - b.edits);
  return ranked[0]?.known;
}

function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
