import { isLessBetter, valuesOf, type Found } from "./found.ts";
import { median } from "./median.ts";

/** What Pawl's figure is divided by, in the same repetition. */
type Rival =
  /** The best of these contestants. */
  | { readonly kind: "best"; readonly of: readonly string[]; readonly name: string }
  /** Pawl itself, in a reading whose name begins so. */
  | { readonly kind: "reading"; readonly of: string; readonly name: string }
  /** Nothing: the figure itself counts. */
  | { readonly kind: "none"; readonly name: string };

interface Bar {
  /** How the name of the reading begins. */
  readonly of: string;
  readonly must: "at least" | "at most";
  readonly be: number;
  readonly times: Rival;
}

/** How Pawl stands to a bar: the median of the ratios within each repetition counts. */
export interface Verdict {
  readonly of: string;
  readonly bar: string;
  /** One for each repetition; none if Pawl or its rival was not measured. */
  readonly ratios: readonly number[];
  readonly median: number | null;
  readonly isMet: boolean | null;
}

const queues = ["graphile-worker", "pg-boss"];
const bestPeer = {
  kind: "best",
  of: [...queues, "dbos", "openworkflow"],
  name: "× the best peer",
} as const;
const bestQueue = { kind: "best", of: queues, name: "× the best queue" } as const;
const product = (of: string, name: string): Rival => ({ kind: "best", of: [of], name: `× ${name}` });
const dbos = product("dbos", "DBOS");
const insert = product("limit", "one durable insert");
const itself = (name: string): Rival => ({ kind: "none", name });

/** For one process that works, with Node 20 and Pawl as it comes. */
const bars: readonly Bar[] = [
  { of: "W1: starts, a call each", must: "at least", be: 4, times: bestPeer },
  { of: "W1: starts in bulk", must: "at least", be: 2, times: bestPeer },
  {
    of: "W2: drain of plain runs, one process",
    must: "at least",
    be: 1.3,
    times: product("graphile-worker", "graphile-worker"),
  },
  {
    of: "W2: drain of plain runs, two processes",
    must: "at least",
    be: 1.2,
    times: { kind: "reading", of: "W2: drain of plain runs, one process", name: "× one process" },
  },
  { of: "W3: five steps, 200 in", must: "at least", be: 0.5, times: product("limit", "the limit") },
  { of: "W4: start to handler", must: "at most", be: 0.7, times: bestQueue },
  { of: "W4: start to result, p50", must: "at most", be: 0.3, times: product("dbos", "DBOS's queue") },
  { of: "W4: start to result without a queue", must: "at most", be: 1, times: dbos },
  { of: "W5: a drain beside", must: "at least", be: 0.9, times: itself("of the rate") },
  { of: "W5: a drain behind", must: "at least", be: 0.9, times: itself("of the rate") },
  { of: "W5: a drain while", must: "at least", be: 0.85, times: itself("of the rate") },
  { of: "W6: 1,000 steps", must: "at most", be: 1 / 20, times: bestPeer },
  { of: "W6: 1,000 children", must: "at most", be: 1 / 10, times: bestPeer },
  { of: "W7: a step, of 1,000 ", must: "at most", be: 2.5, times: insert },
  { of: "W7: a step, of 5,000 ", must: "at most", be: 2.5, times: insert },
  { of: "W7: a step, of 20,000 ", must: "at most", be: 2.5, times: insert },
  { of: "W7: the next step after 5,000", must: "at most", be: 200, times: itself("ms") },
  { of: "W8: memory of a worker that has nothing", must: "at most", be: 80, times: itself("MB") },
  { of: "W8: calls for a step", must: "at most", be: 0.1, times: itself("calls") },
  { of: "W8: WAL for a run of five steps", must: "at most", be: 3_800, times: itself("bytes") },
  { of: "W9: 10,000 parked runs", must: "at most", be: 2_000, times: itself("ms") },
  { of: "W9: 100,000 timers", must: "at most", be: 10_000, times: itself("ms") },
  { of: "W9: p95 of a plain run", must: "at most", be: 2, times: itself("times") },
];

export function judge(found: readonly Found[]): readonly Verdict[] {
  return bars.map(({ of, must, be, times }) => {
    const reading = found.find(({ name }) => name.startsWith(of));
    const ratios = reading === undefined ? [] : ratiosTo(times, reading, found);
    const middle = ratios.length === 0 ? null : median(ratios);
    return {
      of: reading?.name ?? of,
      bar: `${must} ${be.toLocaleString("en")} ${times.name}`,
      ratios,
      median: middle,
      isMet: middle === null ? null : must === "at least" ? middle >= be : middle <= be,
    };
  });
}

function ratiosTo(rival: Rival, reading: Found, found: readonly Found[]): readonly number[] {
  const others = rivalValues(rival, reading, found);
  return valuesOf(reading, "pawl")
    .map((value, repetition) => value / (others(repetition) ?? Number.NaN))
    .filter(Number.isFinite);
}

function rivalValues(
  rival: Rival,
  reading: Found,
  found: readonly Found[],
): (repetition: number) => number | undefined {
  switch (rival.kind) {
    case "none":
      return () => 1;
    case "reading": {
      const other = found.find(({ name }) => name.startsWith(rival.of));
      const values = other === undefined ? [] : valuesOf(other, "pawl");
      return (repetition) => values[repetition];
    }
    case "best": {
      const all = rival.of.map((each) => valuesOf(reading, each));
      const best = isLessBetter(reading.unit) ? Math.min : Math.max;
      return (repetition) => {
        const values = all.flatMap((each) => each[repetition] ?? []);
        return values.length === 0 ? undefined : best(...values);
      };
    }
    default:
      return rival satisfies never;
  }
}
