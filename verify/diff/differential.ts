import { PrivateServer } from "pawl-test-support/private-server";
import pg from "pg";
import type { Violation } from "../hist/verdict.ts";
import { provesNothing, type Stage, type StageFailure, type StageReport } from "../stage.ts";
import { playClosePairs } from "./close-pairs.ts";
import { playEpisode, shrink, type Episode } from "./episode.ts";
import { createHeldStore } from "./held-store.ts";
import { Match, pairEnds } from "./match.ts";
import { createTally, type Tally } from "./tally.ts";

const leastOperations = 3_000;
/** Where too little has happened by then, it may take so many times the time it was given. */
const patience = 6;
/** Each waits for Postgres most of the time. */
const matchesAtOnce = 3;
const shrinkForMs = 20_000;

/** Quick, since nobody needs it afterwards; deadlocks are found before anybody gives up waiting. */
const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  autovacuum: "off",
  jit: "off",
  deadlock_timeout: "20ms",
};

/**
 * The same random operations on the memory store, which the simulation rests on, and on Postgres: one after the other,
 * and two at once.
 */
export const differential: Stage = {
  name: "differential",
  async run({ seed, seconds, isRepeat }) {
    const began = performance.now();
    const elapsed = (): number => (performance.now() - began) / 1_000;
    await using server = await PrivateServer.start(settings);
    const url = await server.createDatabase("differential");
    if (isRepeat) return await withMatches(url, 1, (matches) => compare(matches, [seed]));
    const report = await withMatches(url, matchesAtOnce, async (matches) => {
      const close = await playClosePairs(matches);
      if (close !== null)
        return {
          landed: new Map(),
          figures: [],
          failures: [{ violations: [violationOf(close)], seed: null }],
        };
      const tally = createTally();
      const isEnough = (): boolean => tally.operations >= leastOperations && tally.missing().length === 0;
      const seeds = seedsWhile(seed, () => elapsed() < (isEnough() ? seconds : patience * seconds));
      const report = await compare(matches, seeds, tally);
      const failures = report.failures.length > 0 ? report.failures : shortcomings(tally, report);
      const rate = `${tally.operations} operations, ${(tally.operations / elapsed()).toFixed(0)} a second.`;
      return { ...report, failures, figures: [rate, ...report.figures] };
    });
    const deadlocks = await countDeadlocks(url);
    if (deadlocks === 0) return report;
    const violation = { invariant: "I17", says: `Postgres ended ${deadlocks} deadlocks`, witness: [] };
    return { ...report, failures: [...report.failures, { violations: [violation], seed: null }] };
  },
};

/** Our own statements never block each other for good. Connections tell when they end. */
async function countDeadlocks(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const text = "select deadlocks::integer from pg_stat_database where datname = current_database()";
  const { rows } = await client.query<{ deadlocks: number }>(text);
  await client.end();
  return rows[0]?.deadlocks ?? 0;
}

function* seedsWhile(base: string, isWanted: () => boolean): Generator<string> {
  for (let episode = 1; isWanted(); episode++) yield `${base}.${episode}`;
}

async function withMatches<Answer>(
  url: string,
  count: number,
  use: (matches: readonly Match[]) => Promise<Answer>,
): Promise<Answer> {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const stores = await Promise.all(numbers.map((number) => createHeldStore(url, number)));
  try {
    return await use(stores.map((store) => new Match(store)));
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

/** Plays an episode of each seed, until the stores differ. */
async function compare(
  matches: readonly Match[],
  seeds: Iterable<string>,
  tally: Tally = createTally(),
): Promise<StageReport> {
  const failures: StageFailure[] = [];
  const left = seeds[Symbol.iterator]();
  const play = async (match: Match): Promise<void> => {
    for (let next = left.next(); next.done !== true && failures.length === 0; next = left.next()) {
      const episode = await playEpisode(match, next.value, tally);
      if (episode.difference === null) continue;
      const small = await shrink(match, episode, shrinkForMs);
      failures.push({ violations: [violationOf(small)], seed: next.value });
    }
  };
  await Promise.all(matches.map(play));
  const landed = new Map<string, number>(
    pairEnds.map((end) => [
      `two at once: ${end}`,
      matches.reduce((sum, { pairs }) => sum + (pairs.get(end) ?? 0), 0),
    ]),
  );
  return { landed, figures: [`${tally.kinds} kinds of answers.`], failures };
}

function shortcomings(tally: Tally, { landed }: StageReport): readonly StageFailure[] {
  const missing = [
    ...tally.missing(),
    ...[...landed].flatMap(([kind, times]) => (times === 0 ? [kind] : [])),
  ];
  if (missing.length > 0) return [provesNothing(`This never happened: ${missing.join("; ")}.`)];
  if (tally.operations < leastOperations)
    return [provesNothing(`There were only ${tally.operations} operations.`)];
  return [];
}

function violationOf({ turns, difference }: Episode): Violation {
  return {
    invariant: "I1",
    says: `Postgres does not do what the memory store does:\n${difference ?? ""}\nafter, and in the last of, these turns:`,
    witness: turns,
  };
}
