import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { restMs } from "../begin-probe.ts";
import { callFrom } from "../callers.ts";
import type { Latencies } from "../driver.ts";

// What is possible at all: the least that a durable, fenced engine of this kind does, in one Node process. Its tables have what
// a run, a lease and a fact need and nothing more; it has no retries, no timers, no messages, no codec and no telemetry.

const tables = `
  create table sketch_run (id bigint primary key, input text not null, status text not null default 'pending');
  create table sketch_ready (id bigint primary key);
  create table sketch_lease (id bigint primary key, worker integer not null, epoch integer not null);
  create table sketch_event (run_id bigint, seq integer, at timestamptz not null default clock_timestamp(), kind text not null,
                             name text, data text, primary key (run_id, seq));`;

const statements = {
  start: `with i as (insert into sketch_run (id, input) select * from unnest($1::bigint[], $2::text[]))
          insert into sketch_ready (id) select unnest($1::bigint[])`,
  claim: `with c as materialized (select ctid, id from sketch_ready order by id limit $1 for update skip locked),
               d as (delete from sketch_ready r using c where r.ctid = c.ctid returning r.id)
          insert into sketch_lease (id, worker, epoch) select id, 1, 1 from d returning id`,
  record: `with held as materialized (select id from sketch_lease
                                       where id = any ($1::bigint[]) and worker = 1 and epoch = 1 order by id for update)
           insert into sketch_event (run_id, seq, kind, name, data)
           select e.run_id, e.seq, 'step_completed', e.name, e.data
             from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[]) e (run_id, seq, name, data)
            where e.run_id in (select id from held)
           returning run_id`,
  insert: `insert into sketch_event (run_id, seq, kind, name, data) values ($1, $2, 'step_completed', $3, $4)`,
  end: `with gone as (delete from sketch_lease where id = any ($1::bigint[]) and worker = 1 and epoch = 1 returning id),
             done as (update sketch_run set status = 'completed' where id in (select id from gone) returning id)
        insert into sketch_event (run_id, seq, kind)
        select d.id, e.seq, 'completed' from done d join unnest($1::bigint[], $2::integer[]) e (id, seq) using (id)
        returning run_id`,
} as const;

/** Merges what comes in while the last batch is under way; `flights` batches may be. */
function grouped<Item>(
  send: (items: readonly Item[]) => Promise<unknown>,
  flights: number,
): (item: Item) => Promise<void> {
  let waiting: {
    readonly item: Item;
    readonly done: () => void;
    readonly failed: (error: unknown) => void;
  }[] = [];
  let flying = 0;
  let isScheduled = false;
  const fly = async (): Promise<void> => {
    isScheduled = false;
    if (waiting.length === 0 || flying >= flights) return;
    const batch = waiting;
    waiting = [];
    flying += 1;
    try {
      await send(batch.map(({ item }) => item));
      for (const { done } of batch) done();
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
    flying -= 1;
    schedule();
  };
  const schedule = (): void => {
    if (isScheduled || waiting.length === 0 || flying >= flights) return;
    isScheduled = true;
    setImmediate(() => void fly());
  };
  return (item) =>
    new Promise((done, failed) => {
      waiting.push({ item, done, failed });
      schedule();
    });
}

interface Fact {
  readonly run: number;
  readonly seq: number;
  readonly name: string;
  readonly data: string;
}

export interface Sketch {
  migrate(): Promise<void>;
  /** Starts plain runs, a call each, from so many callers. */
  starts(count: number, callers: number): Promise<void>;
  /** Starts plain runs, so many with each call. */
  startsInBulk(count: number, perCall: number): Promise<void>;
  /** Claims and completes all that is ready, so many at a time, a fact for each. */
  drain(batch: number): Promise<void>;
  /** Runs of five steps: so many in all, so many at once, each awaited by who started it. */
  fiveSteps(count: number, inFlight: number): Promise<void>;
  /** So many facts, an insert and a commit for each, one after the other. */
  inserts(count: number): Promise<void>;
  /**
   * One at a time: start, claim and end, each a commit, with a notification on another connection after the start; and a
   * notification alone.
   */
  latencies(count: number): Promise<Latencies>;
  close(): Promise<void>;
}

export async function openSketch(url: string): Promise<Sketch> {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  let lastId = 0;
  const call = (name: keyof typeof statements, values: readonly unknown[]): Promise<pg.QueryResult> =>
    pool.query({ name, text: statements[name], values: [...values] });

  const start = grouped<{ readonly id: number; readonly input: string }>(
    (runs) => call("start", [runs.map(({ id }) => id), runs.map(({ input }) => input)]),
    1,
  );
  const record = grouped<Fact>(
    (facts) =>
      call("record", [
        facts.map(({ run }) => run),
        facts.map(({ seq }) => seq),
        facts.map(({ name }) => name),
        facts.map(({ data }) => data),
      ]),
    1,
  );
  const end = grouped<{ readonly run: number; readonly seq: number }>(
    (ends) => call("end", [ends.map(({ run }) => run), ends.map(({ seq }) => seq)]),
    1,
  );

  const begin = async (order: number): Promise<number> => {
    const id = ++lastId;
    await start({ id, input: JSON.stringify({ order }) });
    return id;
  };

  return {
    async migrate() {
      await pool.query(tables);
    },
    starts: (count, callers) => callFrom(callers, count, begin),
    async startsInBulk(count, perCall) {
      for (let first = 0; first < count; first += perCall) {
        const orders = Array.from({ length: Math.min(perCall, count - first) }, (_, index) => first + index);
        const ids = orders.map(() => ++lastId);
        await call("start", [ids, orders.map((order) => JSON.stringify({ order }))]);
      }
    },
    async inserts(count) {
      const run = ++lastId;
      for (let seq = 1; seq <= count; seq++)
        await call("insert", [run, seq, "one", JSON.stringify({ order: seq, ok: true })]);
    },
    async latencies(count) {
      const listener = new pg.Client(url);
      await listener.connect();
      await listener.query("listen sketch");
      const [begins, results, notices]: [number[], number[], number[]] = [[], [], []];
      const notify = async (): Promise<number> => {
        const heardAt = new Promise<number>((resolve) => {
          listener.once("notification", () => resolve(performance.now()));
        });
        await pool.query("notify sketch");
        return heardAt;
      };
      for (let done = 0; done < count; done++) {
        const beganAt = performance.now();
        await begin(done);
        begins.push((await notify()) - beganAt);
        const { rows } = (await call("claim", [1])) as { rows: { id: string }[] };
        await call("end", [rows.map(({ id }) => id), [1]]);
        results.push(performance.now() - beganAt);
        await pause(restMs);
        const notifiedAt = performance.now();
        notices.push((await notify()) - notifiedAt);
        await pause(restMs);
      }
      await listener.end();
      return { begins, results, direct: results, notices };
    },
    async drain(batch) {
      for (;;) {
        const { rows } = (await call("claim", [batch])) as { rows: { id: string }[] };
        if (rows.length === 0) return;
        await call("end", [rows.map(({ id }) => id), rows.map(() => 1)]);
      }
    },
    async fiveSteps(count, inFlight) {
      const ended = new Map<number, () => void>();
      let held = 0;
      let isOpen = true;
      const execute = async (run: number): Promise<void> => {
        for (let seq = 1; seq <= 5; seq++) {
          await record({ run, seq, name: "step", data: JSON.stringify({ order: run, ok: true }) });
        }
        await end({ run, seq: 6 });
        held -= 1;
        ended.get(run)?.();
      };
      const work = async (): Promise<void> => {
        while (isOpen) {
          const room = inFlight - held;
          const { rows } =
            room > 0 && ended.size > held
              ? ((await call("claim", [room])) as { rows: { id: string }[] })
              : { rows: [] };
          held += rows.length;
          for (const { id } of rows) void execute(Number(id));
          if (rows.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        }
      };
      const working = work();
      await callFrom(inFlight, count, async (order) => {
        const id = ++lastId;
        const result = new Promise<void>((resolve) => ended.set(id, resolve));
        await start({ id, input: JSON.stringify({ order }) });
        await result;
        ended.delete(id);
      });
      isOpen = false;
      await working;
    },
    close: () => pool.end(),
  };
}
