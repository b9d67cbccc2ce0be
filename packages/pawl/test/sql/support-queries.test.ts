import { randomBytes } from "node:crypto";
import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type MixedRuns, mixRuns } from "./mixed-runs.ts";
import { parts, supportQueries, withVariables } from "./sql-page.ts";

const role = `support_${randomBytes(6).toString("hex")}`;
const password = randomBytes(12).toString("hex");

let database: TestDatabase;
let admin: pg.Pool;
/** A person who may read and nothing else. */
let support: pg.Pool;
let mixed: MixedRuns;

type Row = Readonly<Record<string, unknown>>;

async function ask(sql: string, variables: Readonly<Record<string, string>> = {}): Promise<readonly Row[]> {
  return (await support.query<Row>(withVariables(sql, variables))).rows;
}

/** Asks what the page shows under this title. */
async function askPage(
  title: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<readonly Row[]> {
  const query = supportQueries.find((each) => each.title === title);
  if (query === undefined) throw new Error(`The page has no query "${title}".`);
  return ask(query.sql, variables);
}

beforeAll(async () => {
  database = await createDatabase("empty");
  admin = new pg.Pool({ connectionString: database.url, max: 20 });
  mixed = await mixRuns(admin, "pawl");
  await admin.query(`create role ${role} login password '${password}'`);
  await admin.query(
    `grant usage on schema pawl to ${role}; grant select on all tables in schema pawl to ${role}`,
  );
  const url = new URL(database.url);
  url.username = role;
  url.password = password;
  support = new pg.Pool({ connectionString: url.href, max: 5 });
});

afterAll(async () => {
  await mixed.close();
  await support.end();
  await admin.query(`drop owned by ${role}; drop role ${role}`);
  await admin.end();
  await dropDatabase(database);
});

test("there are a dozen ready queries and more", () => {
  expect(supportQueries.length).toBeGreaterThanOrEqual(12);
});

test.for([...parts("## Views").keys()].map((title) => title.replaceAll("`", "")))(
  "a role that may only read reads all of %s, also what is encrypted",
  async (view) => {
    expect(await ask(`select * from pawl.${view}`)).not.toEqual([]);
  },
);

test.for([
  "delete from pawl.run",
  "update pawl.steps set name = 'mine'",
  "select pawl.cancel(:'run', 'no')",
  "select pawl.start('mine')",
])("a role that may only read may not %s", async (sql) => {
  await expect(ask(sql, { run: mixed.ids.shipping })).rejects.toMatchObject({ code: "42501" });
});

describe("the ready query", () => {
  test("why does this run not go on", async () => {
    const [row] = await askPage("Why does this run not go on?", { run: mixed.ids.unserved });
    expect(row).toMatchObject({
      status: "pending",
      waits_for: 'a worker for mail@1 on queue "mail": there is none',
    });
  });

  test("what is stuck finds what has not moved, and not what sleeps", async () => {
    const title = "What is stuck?";
    expect(await askPage(title)).toEqual([]);
    const { sql } = supportQueries.find((query) => query.title === title)!;
    const found = await ask(sql.replace("interval '1 hour'", "interval '0'"));
    const { unserved, paused, blocked, exporting, sleeping, delayed } = mixed.ids;
    const ids = found.map((row) => row["run_id"]);
    expect(ids).toEqual(expect.arrayContaining([unserved, paused, blocked, exporting]));
    expect(ids).not.toContain(sleeping);
    expect(ids).not.toContain(delayed);
  });

  test("what does not fit its code", async () => {
    expect(await askPage("What does not fit its code?")).toEqual([
      expect.objectContaining({
        run_id: mixed.ids.blocked,
        waits_for: expect.stringContaining("ask kindly") as string,
      }),
    ]);
  });

  test("what failed in the last hour, by error code", async () => {
    expect(await askPage("What failed in the last hour, by error code?")).toEqual([
      expect.objectContaining({
        error_code: "CARD_DECLINED",
        workflow: "broken",
        count: "2",
        for_example: "The card was declined",
      }),
    ]);
  });

  test("the newest dead letters", async () => {
    const { failed, sealedFailed } = mixed.ids;
    expect(await askPage("The newest dead letters")).toEqual([
      expect.objectContaining({ run_id: sealedFailed, error_code: "CARD_DECLINED", error_message: null }),
      expect.objectContaining({ run_id: failed, error_message: "The card was declined", attempts: 1 }),
    ]);
  });

  test("what is pending, by queue", async () => {
    expect(await askPage("What is pending, and since when, by queue?")).toEqual([
      expect.objectContaining({ queue: "mail", workflow: "mail", version: 1, count: "2" }),
    ]);
  });

  test("the runs of a customer, newest first", async () => {
    const { failed, shipping, completed } = mixed.ids;
    const found = await askPage("The runs of a customer", { tag: "customer:42" });
    expect(found.map((row) => row["run_id"])).toEqual([failed, shipping, completed]);
  });

  test("the run of a key", async () => {
    expect(await askPage("The run of a key", { key: "order:2" })).toEqual([
      expect.objectContaining({ id: mixed.ids.shipping, status: "waiting", input: 13 }),
    ]);
    expect(await askPage("The run of a key", { key: "order:3" })).toEqual([]);
  });

  test("who holds this run, and what it does", async () => {
    const title = "Who holds this run, and what does it do?";
    expect(await askPage(title, { run: mixed.ids.exporting })).toEqual([
      expect.objectContaining({ status: "running", pid: process.pid, step: "write file" }),
    ]);
  });

  test("the story of a run tells when steps began and when they ended", async () => {
    const story = await askPage("The story of a run", { run: mixed.ids.completed });
    expect(story.map((row) => row["what"])).toEqual([
      "started on queue default",
      "step reserve began",
      "step reserve completed",
      "child bill started",
      "child bill completed",
      "signal:shipped was received",
      expect.stringMatching(/^sleep until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      "a worker began to execute it",
      "sleep is over",
      "completed",
    ]);
  });

  test("the story of a run tells of the worker that died", async () => {
    const story = await askPage("The story of a run", { run: mixed.ids.crashed });
    expect(story.map((row) => row["what"])).toEqual([
      "started on queue default",
      "a worker began to execute it",
      "the worker died",
      "a worker began to execute it",
      "rows was published",
      "stream:rows was written",
      "completed",
    ]);
  });

  test("what a run has done, with which results", async () => {
    const title = "What has a run done, with which results?";
    expect(await askPage(title, { run: mixed.ids.completed })).toEqual([
      expect.objectContaining({ kind: "step", name: "reserve", result: "shelf 4", input: null }),
      expect.objectContaining({
        kind: "child",
        name: "bill",
        input: 12,
        result: { amount: 12 },
        error: null,
      }),
      expect.objectContaining({ kind: "signal", name: "signal:shipped", result: { carrier: "dhl" } }),
    ]);
    expect(await askPage(title, { run: mixed.ids.failed })).toEqual([
      expect.objectContaining({
        kind: "step",
        name: "pay",
        result: null,
        error: expect.objectContaining({ code: "CARD_DECLINED" }) as object,
      }),
    ]);
  });

  test("how a run's attempts went", async () => {
    const attempts = await askPage("How did its attempts go?", { run: mixed.ids.crashed });
    expect(attempts).toEqual([
      expect.objectContaining({ attempt: 1, outcome: "crashed", will_retry: true, host: "attic" }),
      expect.objectContaining({ attempt: 2, outcome: "completed", will_retry: false, pid: process.pid }),
    ]);
  });

  test("a run's children", async () => {
    expect(await askPage("Its children", { run: mixed.ids.parent })).toEqual([
      expect.objectContaining({ workflow: "mail", status: "pending" }),
    ]);
  });

  test("what happened lately, over all runs", async () => {
    const title = "What happened in the last 30 seconds, over all runs?";
    const { sql } = supportQueries.find((query) => query.title === title)!;
    await ask(sql);
    // The runs were made a while ago where the machine is busy.
    const found = await ask(sql.replace("30 seconds", "1 day"));
    const { failed, cancelled } = mixed.ids;
    expect(found).toContainEqual(
      expect.objectContaining({ run_id: failed, what: "failed: The card was declined" }),
    );
    expect(found).toContainEqual(
      expect.objectContaining({ run_id: cancelled, what: "cancel was asked for: changed my mind" }),
    );
  });

  test("the slowest steps", async () => {
    const steps = await askPage("The slowest steps of today");
    expect(steps.map((row) => row["name"])).toEqual(expect.arrayContaining(["reserve", "charge", "pay"]));
  });

  test("how many runs started and ended, by the minute", async () => {
    const minutes = await askPage("How many runs started and ended, by the minute?");
    const sum = (column: string): number => minutes.reduce((total, row) => total + Number(row[column]), 0);
    const [{ runs, completed, otherwise } = {}] = await ask(
      `select count(*)::integer as runs, count(*) filter (where status = 'completed')::integer as completed,
              count(*) filter (where ended_at is not null and status <> 'completed')::integer as otherwise from pawl.runs`,
    );
    expect([sum("started"), sum("completed"), sum("ended_otherwise")]).toEqual([runs, completed, otherwise]);
  });

  test("what is due", async () => {
    const due = await askPage("What is due in the next hour?");
    expect(due.map((row) => row["run_id"])).toEqual([mixed.ids.blocked, mixed.ids.retry]);
  });

  test("what runs wait for", async () => {
    const waits = await askPage("What do runs wait for?");
    const seen = waits.map(({ workflow, kind, name, count }) => [workflow, kind, name, count]);
    expect(seen).toHaveLength(8);
    expect(seen).toEqual(
      expect.arrayContaining([
        ["order", "signal", "shipped", "1"],
        ["order", "timer", null, "1"],
        ["report", "child", "mail", "1"],
        ["nap", "timer", null, "1"],
        ["nap", "start", null, "1"],
        ["nap", "resume", null, "1"],
        ["flaky", "retry", null, "1"],
        ["survey", "code", null, "1"],
      ]),
    );
  });

  test("who works", async () => {
    expect(await askPage("Who works, and how do they fare?")).toEqual([
      expect.objectContaining({ pid: process.pid, queues: ["exports"], held: "1" }),
    ]);
  });

  test("which steps have been running for long", async () => {
    expect(await askPage("Which steps have been running for long?")).toEqual([
      expect.objectContaining({ name: "write file", run_id: mixed.ids.exporting }),
    ]);
  });
});

describe("the timers of a run", () => {
  const timersOf = (run: string): Promise<readonly Row[]> =>
    ask("select name, kind, status from pawl.timers where run_id = :'run' order by seq", { run });

  test("are set until they fire", async () => {
    expect(await timersOf(mixed.ids.sleeping)).toEqual([{ name: "sleep", kind: "sleep", status: "set" }]);
    expect(await timersOf(mixed.ids.shipping)).toEqual([
      { name: "signal:shipped", kind: "timeout", status: "set" },
    ]);
    expect(await timersOf(mixed.ids.completed)).toEqual([{ name: "sleep", kind: "sleep", status: "fired" }]);
  });

  test("are void once the signal has come, or their run has ended", async () => {
    expect(await timersOf(mixed.ids.delivered)).toEqual([
      { name: "signal:shipped", kind: "timeout", status: "void" },
      { name: "sleep", kind: "sleep", status: "fired" },
    ]);
    expect(await timersOf(mixed.ids.cancelled)).toEqual([{ name: "sleep", kind: "sleep", status: "void" }]);
  });
});

test("a run says when it moved, how long it took and what it failed with", async () => {
  const [failed] = await ask("select * from pawl.runs where id = :'run'", { run: mixed.ids.failed });
  expect(failed).toMatchObject({
    status: "failed",
    error_code: "CARD_DECLINED",
    error_message: "The card was declined",
    worker_id: null,
    moved_at: failed!["ended_at"],
  });
  expect(failed!["duration"]).not.toBeNull();
  const [exporting] = await ask("select * from pawl.runs where id = :'run'", { run: mixed.ids.exporting });
  expect(exporting).toMatchObject({
    status: "running",
    pid: process.pid,
    moved_at: exporting!["claimed_at"],
  });
});

test("an id's bound parts what was started before an instant from the rest", async () => {
  const bound = "pawl.id_at(r.created_at - interval '1 second')";
  const [row] = await ask(
    `select bool_and(r.id >= ${bound} and r.id < pawl.id_at(r.created_at + interval '1 second')) as is_between from pawl.runs r`,
  );
  expect(row).toEqual({ is_between: true });
  expect(await ask("select pawl.id_at('1969-01-01') as id")).toEqual([
    { id: "00000000-0000-0000-0000-000000000000" },
  ]);
});
