import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { migrate } from "../../src/postgres/migrate.ts";
import "../../src/postgres/postgres-store.ts";
import { bindSchema, databaseClock, schemaName } from "../../src/postgres/schema-name.ts";
import { declaredTransitions } from "../../src/postgres/transition.ts";
import { claimRuns, claimRunsValues } from "../../src/postgres/transitions/claim-runs.ts";
import {
  createHeldRun,
  createHeldRunValues,
  createRuns,
  createRunsValues,
} from "../../src/postgres/transitions/create-runs.ts";
import {
  beginRuns,
  completeRun,
  completeRunValues,
  endRuns,
  endValues,
  releaseRuns,
  releaseValues,
} from "../../src/postgres/transitions/end-runs.ts";
import { leaseValues } from "../../src/postgres/transitions/holder-calls.ts";
import { parkRuns, parkValues } from "../../src/postgres/transitions/park-runs.ts";
import { inboxValues, readInbox } from "../../src/postgres/transitions/read-inbox.ts";
import {
  recordEvents,
  recordStep,
  recordStepValues,
  recordValues,
} from "../../src/postgres/transitions/record-events.ts";
import { tellRuns, tellValues } from "../../src/postgres/transitions/tell-runs.ts";
import {
  heartbeat,
  heartbeatValues,
  registerValues,
  registerWorker,
} from "../../src/postgres/transitions/workers.ts";
import { plainRun } from "../../src/store/run-record.ts";
import { systemTimers } from "../../src/system/system-timers.ts";
import { describeStatement } from "./describe-statement.ts";

const schema = schemaName("pawl");
/** All of them: importing the store has declared them. */
const transitions = declaredTransitions();

/** Types that the driver gives as our decoders read them. A bigint would come as text, a time as a Date, json parsed. */
const types = {
  bool: 16,
  int2: 21,
  int4: 23,
  text: 25,
  float8: 701,
  textArray: 1009,
  void: 2278,
  uuid: 2950,
};

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createDatabase("empty");
  const pool = new pg.Pool({ connectionString: database.url });
  await migrate({ pool, schema, clock: databaseClock, timers: systemTimers, pause: async () => {} });
  await pool.end();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("set search_path = ''");
});

afterAll(async () => {
  await client.end();
  await dropDatabase(database);
});

test("every statement of the store is declared under a name of its own", () => {
  const names = transitions.map(({ name }) => name);
  expect(names.length).toBeGreaterThan(15);
  expect(new Set(names).size).toBe(names.length);
});

describe.for(transitions.map((transition) => [transition.name, transition.text] as const))(
  "%s",
  ([, text]) => {
    const shape = () => describeStatement(client, bindSchema(text, schema, databaseClock));

    test("can be prepared against a migrated schema, whatever the search path", async () => {
      await expect(shape()).resolves.toBeDefined();
    });

    test("answers only types that its decoder reads", async () => {
      for (const column of (await shape()).columns) {
        expect(Object.values(types)).toContain(column.type);
      }
    });

    test("answers instants as numbers of ms and payloads as text", async () => {
      const payloads = /^(data|notes|input|output|error|input_notes|output_notes|error_notes)$/;
      const { columns } = await shape();
      const typesOf = (isMeant: (name: string) => boolean) =>
        columns.flatMap(({ name, type }) => (isMeant(name) ? [type] : []));
      expect(typesOf((name) => name.endsWith("_ms")).filter((type) => type !== types.float8)).toEqual([]);
      expect(typesOf((name) => payloads.test(name)).filter((type) => type !== types.text)).toEqual([]);
    });
  },
);

describe("the parameters that are sent", () => {
  const lease = { runId: "r", epoch: 1, workerId: "w" };
  const recording = { lease, events: [], children: [] };
  const parking = {
    ...recording,
    lastSeq: 0,
    look: 1,
    reason: "waiting",
    dueAt: null,
    delayMs: null,
    wants: [],
    attemptFailed: false,
  } as const;
  const ending = { ...recording, parentId: null, status: "completed", output: null, error: null } as const;
  const claim = { workerId: "w", lanes: [], limit: 1, suspects: false, begin: true };
  const newRun = { id: "r", workflow: "x", version: 1, queue: "q", ...plainRun };
  const holder = { workerId: "w", crashLimit: 3, leaseMs: 1 };
  const worker = { id: "w", leaseMs: 1, host: "h", pid: 1, queues: [], concurrency: 1 };
  const message = { id: "m", runId: "r", topic: "cancel", data: null, idempotencyKey: null } as const;

  test.for([
    [createRuns, createRunsValues(0, [], false, null)],
    [createHeldRun, createHeldRunValues(0, { run: newRun, holder })],
    [claimRuns, claimRunsValues(0, claim)],
    [beginRuns, leaseValues(0, [lease])],
    [releaseRuns, releaseValues(0, [{ lease, readyAt: 1 }])],
    [readInbox, inboxValues(0, [{ lease, look: 1 }])],
    [recordEvents, recordValues(0, [recording])],
    [recordStep, recordStepValues(0, recording)],
    [parkRuns, parkValues(0, [parking])],
    [endRuns, endValues(0, [ending])],
    [completeRun, completeRunValues(0, ending)],
    [tellRuns, tellValues(0, [message])],
    [registerWorker, registerValues(worker)],
    [heartbeat, heartbeatValues(0, { workerId: "w", held: [], claimsKnownTo: null })],
  ] as const)("are as many as $0.name takes", async ([transition, values]) => {
    const { parameters } = await describeStatement(
      client,
      bindSchema(transition.text, schema, databaseClock),
    );
    expect(values.length).toBe(parameters.length);
  });
});
