import type { Figure, Reading, Unit } from "./workload.ts";

/** All figures of one name: for each contestant, one of each repetition, in their order. */
export interface Found {
  readonly name: string;
  readonly unit: Unit;
  readonly figures: ReadonlyMap<string, readonly Figure[]>;
}

/** Gathers what is read, in the order in which its names first come. */
export interface Findings {
  add(product: string, reading: Reading): void;
  all(): readonly Found[];
}

export function createFindings(): Findings {
  const found = new Map<string, { readonly unit: Unit; readonly figures: Map<string, Figure[]> }>();
  return {
    add(product, { name, unit, figure }) {
      const { figures } = found.get(name) ?? { figures: new Map<string, Figure[]>() };
      figures.set(product, [...(figures.get(product) ?? []), figure]);
      found.set(name, { unit, figures });
    },
    all: () => [...found].map(([name, each]) => ({ name, ...each })),
  };
}

export function isLessBetter(unit: Unit): boolean {
  return unit !== "1/s" && unit !== "of 1";
}

export function valuesOf({ figures }: Found, product: string): readonly number[] {
  return (figures.get(product) ?? []).map(({ value }) => value);
}
