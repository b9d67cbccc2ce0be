import type { Random } from "./random.ts";

/** The same seed gives the same numbers, everywhere and for ever: histories rest on it. */
export interface SeededRandom extends Random {
  /** 32 random bits. */
  bits(): number;
  /** A uuid v4. */
  uuid(): string;
}

/** The generator sfc32, seeded with four hashes of the text. */
export function createSeededRandom(seed: string): SeededRandom {
  let [a, b, c, counter] = hash(seed);
  const bits = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let round = 0; round < 12; round++) bits();

  const hex = (): string => bits().toString(16).padStart(8, "0");
  return {
    bits,
    next: () => ((bits() >>> 5) * 2 ** 26 + (bits() >>> 6)) / 2 ** 53,
    uuid() {
      const digits = hex() + hex() + hex() + hex();
      const variant = (8 | (Number.parseInt(digits.slice(16, 17), 16) & 3)).toString(16);
      const parts = [digits.slice(0, 8), digits.slice(8, 12), `4${digits.slice(13, 16)}`];
      return [...parts, `${variant}${digits.slice(17, 20)}`, digits.slice(20)].join("-");
    },
  };
}

function hash(text: string): [number, number, number, number] {
  const of = (start: number): number => {
    let mixed = start;
    for (let index = 0; index < text.length; index++) {
      mixed = Math.imul(mixed ^ text.charCodeAt(index), 0x5bd1e995);
      mixed ^= mixed >>> 15;
    }
    return mixed | 0;
  };
  return [of(0x9e3779b9), of(0x243f6a88), of(0xb7e15162), of(0xdeadbeef)];
}
