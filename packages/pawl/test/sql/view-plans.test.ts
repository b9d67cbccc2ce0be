import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPawl } from "../../src/index.ts";
import { schemaName } from "../../src/postgres/schema-name.ts";
import { fillTables } from "../postgres/bulk.ts";
import { forgetStatistics } from "../postgres/forget-statistics.ts";
import { supportQueries, withVariables } from "./sql-page.ts";

/** What no support query may read as a whole. */
const largeTables = ["run", "event"];

/** One that ended; it has a key, a tag and an event. */
const variables = { run: "0174876e-8400-7000-8000-000000000400", tag: "old", key: "old:1024" };

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createDatabase("empty");
  pool = new pg.Pool({ connectionString: database.url, max: 10 });
  await using pawl = createPawl({ pool });
  await pawl.migrate();
  await fillTables(pool, schemaName("pawl"), {
    finished: 400_000,
    parked: 300_000,
    unclaimable: 300_000,
    held: 2_000,
  });
  // As autovacuum does: it also tells the index on time of the pages that are new.
  await pool.query("vacuum (analyze)");
}, 180_000);

afterAll(async () => {
  await pool.end();
  await dropDatabase(database);
});

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly Plan[];
}

async function explain(sql: string): Promise<Plan> {
  const { rows } = await pool.query<{
    "QUERY PLAN": readonly { readonly Plan: Plan }[];
  }>(`explain (analyze, buffers, format json) ${withVariables(sql, variables)}`);
  return rows[0]!["QUERY PLAN"][0]!.Plan;
}

const pagesOf = (plan: Plan): number => plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];

const nodesOf = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

test.for(supportQueries.map(({ title, sql }) => [title, sql] as const))(
  "with a million rows, no table of all runs or events is read to answer: %s",
  { timeout: 30_000 },
  async ([, sql]) => {
    const plan = await explain(sql);
    const read = nodesOf(plan)
      .filter((node) => node["Node Type"] === "Seq Scan")
      .map((node) => node["Relation Name"]);
    expect(read.filter((table) => largeTables.includes(table!))).toEqual([]);
  },
);

test.for([
  ["Why does this run not go on?", 300],
  ["What does not fit its code?", 300],
  ["The newest dead letters", 2_000],
  ["The runs of a customer", 1_500],
  ["The run of a key", 300],
  ["Who holds this run, and what does it do?", 300],
  ["The story of a run", 300],
  ["What has a run done, with which results?", 300],
  ["How did its attempts go?", 300],
  ["Its children", 300],
  ["What happened in the last 30 seconds, over all runs?", 3_000],
  ["What is due in the next hour?", 300],
] as const)("with a million rows, %s looks at fewer than %i pages", async ([title, most]) => {
  const plan = await explain(supportQueries.find((query) => query.title === title)!.sql);
  expect(pagesOf(plan)).toBeLessThan(most);
});

test.for([
  ["select * from pawl.events where at > now() - interval '30 seconds'", "event_at"],
  ["select * from pawl.steps where ended_at > now() - interval '30 seconds'", "event_at"],
  ["select * from pawl.attempts where ended_at > now() - interval '30 seconds'", "event_at"],
  ["select * from pawl.activity_log where ended_at > now() - interval '30 seconds'", "event_at"],
  ["select * from pawl.timers where set_at > now() - interval '30 seconds'", "event_at"],
  ["select * from pawl.runs where id >= pawl.id_at(now() - interval '1 hour')", "run_pkey"],
  ["select * from pawl.runs order by id desc limit 50", "run_pkey"],
  ["select * from pawl.runs where parent_id = :'run'", "run_parent"],
  ["select * from pawl.tagged_runs where tag = 'old' order by run_id desc limit 50", "tag_pkey"],
  ["select * from pawl.dead_letters order by run_id desc limit 50", "stopped_status"],
  ["select * from pawl.dead_letters where error_code = 'NEW'", "stopped_error"],
  ["select * from pawl.live_runs where park_reason = 'blocked'", "parked_reason"],
  ["select * from pawl.live_runs where shard = 0 and due_at < now()", "parked_due"],
] as const)("%s is served by %s", async ([sql, index]) => {
  const plan = await explain(sql);
  expect(nodesOf(plan).map((node) => node["Index Name"])).toContain(index);
});

const viewsOfARun = [
  "timeline",
  "timers",
  "waits",
  "steps",
  "attempts",
  "activity_log",
  "events",
  "dead_letters",
  "nodes",
];

test.for(viewsOfARun)("with a million rows, %s of one run looks at a few pages", async (view) => {
  const plan = await explain(`select * from pawl.${view} where run_id = :'run'`);
  expect(pagesOf(plan)).toBeLessThan(300);
});

/** A pack tells its runs only to who looks into it. */
async function expectFewBesidePacks(): Promise<void> {
  const { rows } = await pool.query<{ pages: number }>(
    "select (pg_relation_size('pawl.pack') / 8192)::int as pages",
  );
  const plan = await explain("select * from pawl.live_runs where run_id = :'run'");
  expect(pagesOf(plan)).toBeLessThan(300 + rows[0]!.pages);
}

test("with a million rows, live_runs of one run looks at a few pages and at the packs", expectFewBesidePacks);

describe("without statistics", () => {
  beforeAll(() => forgetStatistics(pool, schemaName("pawl")));

  test("live_runs of one run looks at a few pages and at the packs", expectFewBesidePacks);

  test.for(viewsOfARun)("%s of one run looks at a few pages", async (view) => {
    const plan = await explain(`select * from pawl.${view} where run_id = :'run'`);
    expect(pagesOf(plan)).toBeLessThan(300);
  });

  test.for([
    "select pawl.why(id), * from pawl.runs where id = :'run'",
    "select * from pawl.runs where id = pawl.id_of(:'key')",
    "select * from pawl.runs order by id desc limit 50",
    "select * from pawl.dead_letters order by run_id desc limit 50",
    "select * from pawl.tagged_runs where tag = :'tag' order by run_id desc limit 50",
  ])("%s looks at a few pages", async (sql) => {
    const plan = await explain(sql);
    expect(pagesOf(plan)).toBeLessThan(1_500);
  });
});
