import type { Verdict } from "./bars.ts";
import { isLessBetter, valuesOf, type Found } from "./found.ts";
import { median } from "./median.ts";
import type { Panel } from "./plot.ts";
import type { Figure } from "./workload.ts";

/** A table for each name, for people. */
export function showFound(found: readonly Found[]): void {
  for (const each of found) {
    console.log(`\n${each.name}`);
    console.table(
      Object.fromEntries(
        [...each.figures].map(([product, figures]) => [product, row(each, product, figures)]),
      ),
    );
  }
}

function row(found: Found, product: string, figures: readonly Figure[]): Readonly<Record<string, string>> {
  const more = Object.keys(figures[0]?.more ?? {});
  const isAlone = product === "pawl" || !found.figures.has("pawl");
  return {
    [found.unit]: spread(figures.map(({ value }) => value)),
    "Pawl is": isAlone ? "" : ratio(found, product),
    "Node ms": perRun(figures.map(({ nodeMs }) => nodeMs)),
    "Postgres ms": perRun(figures.map(({ postgresMs }) => postgresMs)),
    ...Object.fromEntries(more.map((key) => [key, spread(figures.map((each) => each.more?.[key] ?? NaN))])),
  };
}

/** The median of the ratios within each repetition. */
function ratio(found: Found, product: string): string {
  const others = valuesOf(found, product);
  const ratios = valuesOf(found, "pawl").map((value, index) => value / (others[index] ?? NaN));
  return `${format(median(ratios))} times ${isLessBetter(found.unit) ? "its time" : "its rate"}`;
}

/** All bars that something was measured for, and the names of the others. */
export function showVerdicts(verdicts: readonly Verdict[]): void {
  const judged = verdicts.filter(({ isMet }) => isMet !== null);
  const rows = judged.map(({ of, bar, ratios, isMet }) => ({
    measured: of,
    bar,
    "is (least to most)": spread(ratios),
    met: isMet === true ? "yes" : "NO",
  }));
  if (rows.length > 0) console.log("\nBars: medians of the ratios within each repetition");
  if (rows.length > 0) console.table(rows);
  const others = verdicts.filter(({ isMet }) => isMet === null).map(({ of }) => of.trimEnd());
  if (others.length > 0) console.log(`Not measured: ${others.join("; ")}.`);
}

/** Rates as they are, and times turned round, so that more is always better. */
export function panelOf(found: Found): Panel {
  const { name, unit, figures } = found;
  const pawl = median(valuesOf(found, "pawl"));
  return {
    title: name,
    bars: [...figures.keys()].map((product) => {
      const value = median(valuesOf(found, product));
      return {
        name: product,
        times: isLessBetter(unit) ? pawl / value : value / pawl,
        label: `${format(value)} ${unit === "1/s" ? "a second" : unit}`,
      };
    }),
  };
}

function perRun(values: readonly (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? "" : median(known).toFixed(3);
}

export function spread(values: readonly number[]): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const middle = format(median(values));
  return least === most ? middle : `${middle} (${format(least)} to ${format(most)})`;
}

export function format(value: number): string {
  if (Number.isInteger(value) || value >= 100) return value.toFixed(0);
  if (value < 0.1) return value.toPrecision(2);
  return value.toFixed(value >= 10 ? 1 : 2);
}
