/** A source of uniform numbers in [0, 1). */
export interface Random {
  next(): number;
}
