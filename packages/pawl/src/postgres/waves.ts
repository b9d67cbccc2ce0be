/** With fewer, another call costs more than working at the same time gains. */
const leastToShare = 128;
/** A wave that has led to no call in so many turns of the event loop leads to none. */
const longestTurns = 4;

/**
 * Gives the answers of calls in waves: the next one when what the last one led to has been sent. Those who are answered together
 * ask again together, and then this process has nothing to do while the database works, nor the database while this process does.
 * In two waves each works on one of them.
 */
export class Waves {
  readonly #coming: (() => void)[] = [];
  /** How many turns are left to the last wave; 0: it has led to a call, or to none. */
  #turnsLeft = 0;
  #countingFor = 0;

  /** `give` answers the items from the one to before the other. `isOnly`: no other call is out. */
  answer(count: number, isOnly: boolean, give: (from: number, to: number) => void): void {
    const isShared = isOnly && count >= leastToShare && this.#coming.length === 0;
    const half = isShared ? Math.ceil(count / 2) : count;
    this.#coming.push(() => give(0, half));
    if (isShared) this.#coming.push(() => give(half, count));
    this.#giveNext();
  }

  /** A call has gone out. */
  sent(): void {
    if (this.#turnsLeft === 0) return;
    this.#turnsLeft = 0;
    this.#giveNext();
  }

  #giveNext(): void {
    if (this.#turnsLeft > 0) return;
    const give = this.#coming.shift();
    if (give === undefined) return;
    this.#turnsLeft = longestTurns;
    this.#countingFor += 1;
    this.#countTurns(this.#countingFor);
    give();
  }

  #countTurns(wave: number): void {
    setImmediate(() => {
      if (wave !== this.#countingFor || this.#turnsLeft === 0) return;
      this.#turnsLeft -= 1;
      if (this.#turnsLeft === 0) this.#giveNext();
      else this.#countTurns(wave);
    });
  }
}
