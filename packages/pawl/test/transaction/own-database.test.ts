import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { describe, expect, vi } from "vitest";
import type { Hit } from "../../../../verify/chaos/wire-link.ts";
import { WireProxy } from "../../../../verify/chaos/wire-proxy.ts";
import { completionTableSql, withPg } from "../../src/adapters/index.ts";
import { workflow, type OwnTransaction } from "../../src/index.ts";
import { startPgBouncer, pgbouncer } from "../postgres/pgbouncer.ts";
import { test, type Shop } from "./transaction-test.ts";

const once = { attempts: 1 };

const insert = ({ table }: Shop, tx: OwnTransaction, id: number): Promise<unknown> =>
  tx.query(`insert into ${table} (id) values ($1)`, [id]);

describe("a transaction in the database that runs live in", () => {
  test("commits what its function wrote together with its record", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1 }, async (ctx, id: number) => {
      const sold = await ctx.transaction("record", async (tx, { attempt, idempotencyKey }) => {
        const { rows, rowCount } = await tx.query<{ id: number }>(
          `insert into ${shop.table} (id) values ($1) returning id`,
          [id],
        );
        // Nobody else sees either before the commit.
        expect(await shop.ids()).toEqual([]);
        expect(await shop.facts(ctx.run.id)).toEqual([]);
        return { id: rows[0]!.id, rowCount, attempt, idempotencyKey, at: new Date(0) };
      });
      const count = await ctx.step("count", async () => (await shop.ids()).length);
      return { sold, count };
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell, 7);
    expect(await run.result()).toEqual({
      sold: { id: 7, rowCount: 1, attempt: 1, idempotencyKey: `${run.id}/record`, at: new Date(0) },
      count: 1,
    });
    expect(await shop.facts(run.id)).toEqual(["step_completed record", "step_completed count", "completed"]);
    const { rows } = await shop.pool.query(
      `select name, kind, attempt from ${shop.schema}.steps where run_id = $1 order by seq`,
      [run.id],
    );
    expect(rows).toEqual([
      { name: "record", kind: "step_completed", attempt: 1 },
      { name: "count", kind: "step_completed", attempt: 1 },
    ]);
  });

  test("rolls back with a function that throws, and that is the step's failure", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) => {
      try {
        await ctx.transaction("record", async (tx) => {
          await insert(shop, tx, 1);
          throw Object.assign(new Error("out of stock"), { code: "STOCK" });
        });
      } catch (error) {
        return (error as { code: string }).code;
      }
      return "sold";
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    expect(await run.result()).toBe("STOCK");
    expect(await shop.ids()).toEqual([]);
    expect(await shop.facts(run.id)).toEqual(["step_failed record", "completed"]);
  });

  test("is tried again as the workflow's retries say", async ({ shop }) => {
    let calls = 0;
    const retry = { attempts: 3, initial: 1 };
    const sell = workflow({ name: "sell", version: 1, retry }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await insert(shop, tx, ++calls);
        if (calls < 3) throw new Error("not yet");
        return calls;
      }),
    );
    await shop.work([sell]);
    expect(await (await shop.pawl.start(sell)).result()).toBe(3);
    expect(await shop.ids()).toEqual([3]);
  });

  test("shares the names of steps, and is replayed like one", async ({ shop }) => {
    const calls: string[] = [];
    const sell = workflow({ name: "sell", version: 1 }, async (ctx) => {
      const first = await ctx.step("record", () => calls.push("step"));
      const second = await ctx.transaction("record", async (tx) => {
        await insert(shop, tx, 1);
        return calls.push("transaction");
      });
      await ctx.waitForSignal("go");
      return [first, second];
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await expect.poll(() => run.status()).toBe("waiting");
    await run.signal("go");
    expect(await run.result()).toEqual([1, 2]);
    expect(calls).toEqual(["step", "transaction"]);
    expect((await shop.facts(run.id)).slice(0, 2)).toEqual([
      "step_completed record",
      "step_completed record#2",
    ]);
  });

  test("on the new side of a patch comes after the fact that says so", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1 }, async (ctx) => {
      if (ctx.patch("record sales"))
        await ctx.transaction("record", async (tx) => void (await insert(shop, tx, 1)));
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await run.result();
    expect(await shop.facts(run.id)).toEqual(["patched record sales", "step_completed record", "completed"]);
  });

  test("that swallows the error of a query fails, and says why", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await insert(shop, tx, 1);
        await insert(shop, tx, 1).catch(() => {});
        return "sold";
      }),
    );
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await expect(run.result()).rejects.toMatchObject({ cause: { code: "TRANSACTION_ABORTED" } });
    expect(await shop.ids()).toEqual([]);
  });

  test("goes on after an error in a savepoint", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await insert(shop, tx, 1);
        await tx.query("savepoint before");
        await insert(shop, tx, 1).catch(() => tx.query("rollback to savepoint before"));
        await insert(shop, tx, 2);
      }),
    );
    await shop.work([sell]);
    await (await shop.pawl.start(sell)).result();
    expect(await shop.ids()).toEqual([1, 2]);
  });

  test.for(["commit", "rollback"])("whose function says %s itself fails", async (word, { shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await tx.query(word);
        return "sold";
      }),
    );
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await expect(run.result()).rejects.toMatchObject({ cause: { code: "INVALID_TRANSACTION" } });
    expect(await shop.facts(run.id)).toEqual(["step_failed record", "failed"]);
  });

  test("that violates a deferred constraint fails at COMMIT", async ({ shop }) => {
    const { table } = shop;
    await shop.pool.query(`alter table ${table} add unique (note) deferrable initially deferred`);
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await tx.query(`insert into ${table} values (1, 'same'), (2, 'same')`);
        return "sold";
      }),
    );
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await expect(run.result()).rejects.toMatchObject({ cause: { code: "23505" } });
    expect(await shop.ids()).toEqual([]);
    expect(await shop.facts(run.id)).toEqual(["step_failed record", "failed"]);
  });

  test("with a result that cannot be recorded rolls back", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await insert(shop, tx, 1);
        return () => "a function";
      }),
    );
    await shop.work([sell]);
    await expect((await shop.pawl.start(sell)).result()).rejects.toMatchObject({
      cause: { code: "INVALID_PAYLOAD" },
    });
    expect(await shop.ids()).toEqual([]);
  });

  test("starts runs that exist only if it commits", async ({ shop }) => {
    const ship = workflow({ name: "ship", version: 1 }, async () => "shipped");
    const sell = workflow({ name: "sell", version: 1, retry: { attempts: 2, initial: 1 } }, async (ctx) =>
      ctx.transaction("record", async (tx, { attempt }) => {
        await shop.pawl.start(ship, undefined, { tx });
        if (attempt === 1) throw new Error("once more");
        await insert(shop, tx, 1);
      }),
    );
    await shop.work([sell, ship]);
    await (await shop.pawl.start(sell)).result();
    expect((await shop.pawl.list({ workflow: "ship" })).runs).toHaveLength(1);
  });

  test("is over when its function has returned", async ({ shop }) => {
    const late: Promise<unknown>[] = [];
    const sell = workflow({ name: "sell", version: 1 }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        await insert(shop, tx, 1);
        late.push(pause(300).then(() => insert(shop, tx, 2)));
        late[0]!.catch(() => {});
      }),
    );
    await shop.work([sell]);
    await (await shop.pawl.start(sell)).result();
    await expect(late[0]).rejects.toMatchObject({ code: "INVALID_TRANSACTION" });
    expect(await shop.ids()).toEqual([1]);
  });
});

describe("transactions in conflict", () => {
  /** Reads the sum of all notes, and adds one: each of them must see all others. */
  const tally = (shop: Shop, runs: { calls: number }) =>
    workflow({ name: "tally", version: 1, retry: once }, async (ctx, id: number) =>
      ctx.transaction(
        "count",
        async (tx) => {
          runs.calls += 1;
          const { rows } = await tx.query<{ count: number }>(
            `select count(*)::int as count from ${shop.table}`,
          );
          await pause(20);
          await tx.query(`insert into ${shop.table} (id, note) values ($1, $2)`, [id, rows[0]!.count]);
        },
        { isolation: "serializable", conflictAttempts: 100 },
      ),
    );

  test("under serializable are called again until they fit", async ({ shop }) => {
    const runs = { calls: 0 };
    const counted = tally(shop, runs);
    await shop.work([counted]);
    const handles = await Promise.all([1, 2, 3, 4, 5, 6].map((id) => shop.pawl.start(counted, id)));
    await Promise.all(handles.map((run) => run.result()));
    const { rows } = await shop.pool.query<{ note: string }>(`select note from ${shop.table} order by 1`);
    expect(rows.map(({ note }) => note)).toEqual(["0", "1", "2", "3", "4", "5"]);
    expect(runs.calls).toBeGreaterThan(6);
  });

  test("fail with the conflict once their attempts are spent", async ({ shop }) => {
    let calls = 0;
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction(
        "record",
        async (tx) => {
          calls += 1;
          await insert(shop, tx, 1);
          await tx.query("do $$ begin raise exception 'no' using errcode = '40001'; end $$");
        },
        { conflictAttempts: 3 },
      ),
    );
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await expect(run.result()).rejects.toMatchObject({ cause: { code: "40001" } });
    expect(calls).toBe(3);
    expect(await shop.ids()).toEqual([]);
    expect(await shop.facts(run.id)).toEqual(["step_failed record", "failed"]);
  });

  test("that lock each other out are called again", async ({ shop }) => {
    const { table } = shop;
    await shop.pool.query(`insert into ${table} values (1, '0'), (2, '0')`);
    let calls = 0;
    const swap = workflow({ name: "swap", version: 1, retry: once }, async (ctx, order: readonly number[]) =>
      ctx.transaction("swap", async (tx) => {
        calls += 1;
        for (const id of order) {
          await tx.query(`update ${table} set note = note::int + 1 where id = $1`, [id]);
          await pause(100);
        }
      }),
    );
    await shop.work([swap]);
    const runs = await Promise.all([shop.pawl.start(swap, [1, 2]), shop.pawl.start(swap, [2, 1])]);
    await Promise.all(runs.map((run) => run.result()));
    const { rows } = await shop.pool.query(`select note from ${table}`);
    expect(rows).toEqual([{ note: "2" }, { note: "2" }]);
    expect(calls).toBeGreaterThan(2);
  });

  test("of one run commit one after the other", async ({ shop }) => {
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) => {
      const ids = [1, 2, 3, 4, 5];
      const other = ctx.step("other", () => pause(10));
      await Promise.all(
        ids.map((id) => ctx.transaction(`record ${id}`, (tx) => insert(shop, tx, id).then())),
      );
      await other;
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    await run.result();
    expect(await shop.ids()).toEqual([1, 2, 3, 4, 5]);
    const { rows } = await shop.pool.query<{ seq: number }>(
      `select seq from ${shop.schema}.event where run_id = $1 order by seq`,
      [run.id],
    );
    expect(rows.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });
});

describe("a long transaction", () => {
  test("holds up neither other runs nor what its own run is told", async ({ shop }) => {
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const begun = vi.fn<() => void>();
    const long = workflow({ name: "long", version: 1 }, async (ctx) => {
      const beside = ctx.waitForSignal<string>("go").then((word) => ctx.step("heard", () => word));
      await ctx.transaction("long", async (tx) => {
        await insert(shop, tx, 1);
        begun();
        await held;
      });
      return beside;
    });
    const short = workflow({ name: "short", version: 1 }, async (ctx) =>
      ctx.transaction("short", (tx) => insert(shop, tx, 2).then(() => "done")),
    );
    await shop.work([long, short]);
    const run = await shop.pawl.start(long);
    await expect.poll(() => begun).toHaveBeenCalled();
    expect(await (await shop.pawl.start(short)).result()).toBe("done");
    await run.signal("go", "ahead");
    // The step that follows the signal runs and is recorded meanwhile.
    await expect.poll(() => shop.facts(run.id)).toContain("step_completed heard");
    expect(await shop.ids()).toEqual([2]);
    letGo();
    expect(await run.result()).toBe("ahead");
    expect(await shop.ids()).toEqual([1, 2]);
  });

  test("rolls back when its run was terminated meanwhile", async ({ shop }) => {
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const left = vi.fn<() => void>();
    const long = workflow({ name: "long", version: 1 }, async (ctx) =>
      ctx.transaction("long", async (tx) => {
        await insert(shop, tx, 1);
        left();
        await held;
      }),
    );
    await shop.work([long]);
    const run = await shop.pawl.start(long);
    await expect.poll(() => left).toHaveBeenCalled();
    await shop.pawl.terminate(run.id);
    letGo();
    await expect(run.result()).rejects.toMatchObject({ code: "RUN_CANCELLED" });
    await pause(300);
    expect(await shop.ids()).toEqual([]);
    expect(await shop.facts(run.id)).not.toContain("step_completed long");
  });

  test("of more runs than there are connections lets all go on", async ({ shop }) => {
    const pawl = shop.connect({ connections: 2 });
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx, id: number) => {
      const beside = ctx.step("beside", () => pause(50));
      await ctx.transaction("record", async (tx) => {
        await insert(shop, tx, id);
        await pause(50);
      });
      await beside;
    });
    await shop.work([sell], pawl);
    const ids = Array.from({ length: 12 }, (_, index) => index);
    const runs = await Promise.all(ids.map((id) => pawl.start(sell, id)));
    await Promise.all(runs.map((run) => run.result()));
    expect(await shop.ids()).toEqual(ids);
  });
});

describe("a connection that breaks before COMMIT", () => {
  const statements = ["begin", "open_transaction", "sold", "record_in_transaction"];
  const faults = statements.flatMap((statement) => [
    { kind: "cut", statement } as const,
    { kind: "lose", statement } as const,
  ]);

  test.for(faults)("has the function called again: $kind $statement", async (fault, { shop }) => {
    await using proxy = await WireProxy.listen(shop.url);
    await shop.pool.query(
      `create function ${shop.schema}.sold_v1(p_id integer) returns void language sql as
       $$ insert into ${shop.table} (id) values (p_id) $$`,
    );
    const pool = new pg.Pool({ connectionString: proxy.url });
    pool.on("error", () => {});
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx, isOwn: boolean) => {
      const sold = async (tx: OwnTransaction): Promise<void> => {
        await tx.query(`select ${shop.schema}.sold_v1($1)`, [isOwn ? 1 : 2]);
      };
      if (isOwn) await ctx.transaction("record", sold);
      else await ctx.transaction("record", (client) => sold(client), { on: withPg(pool) });
    });
    await shop.work([sell], shop.connect({ url: proxy.url }));
    for (const isOwn of [true, false]) {
      const hit = proxy.inject(fault);
      const run = await shop.pawl.start(sell, isOwn);
      await hit;
      await run.result();
      expect(await shop.facts(run.id)).toEqual(["step_completed record", "completed"]);
    }
    expect(await shop.ids()).toEqual([1, 2]);
    await pool.end();
  });
});

describe("a server that lets nobody in for a while", () => {
  const places = [{ foreign: false }, { foreign: true }];

  test.for(places)("fails no transaction of a library: %o", async (place, { shop }) => {
    const role = `busy_${randomBytes(6).toString("hex")}`;
    await shop.pool.query(
      `${completionTableSql()}; create role ${role} login password 'busy' connection limit 0;
       grant all on all tables in schema public to ${role}`,
    );
    await shop.pawl.migrate({ grantTo: role });
    const url = Object.assign(new URL(shop.url), { username: role, password: "busy" }).href;
    const pool = new pg.Pool({ connectionString: url });
    const on = withPg(pool, place);
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) => {
      const record = async (tx: OwnTransaction): Promise<void> => void (await insert(shop, tx, 1));
      await ctx.transaction("record", record, { on });
    });
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    const isTriedAgain = (): boolean => shop.log.some(({ message }) => message.includes("again"));
    await expect.poll(isTriedAgain, { timeout: 10_000 }).toBe(true);
    await shop.pool.query(`alter role ${role} connection limit -1`);
    await run.result();
    expect(await shop.ids()).toEqual([1]);
    await pool.end();
    await shop.pool.query(`drop owned by ${role}; drop role ${role}`);
  });
});

describe("a COMMIT without an answer", () => {
  const faults = [
    { kind: "lose", calls: 1, facts: ["step_completed record", "completed"] },
    { kind: "cut", calls: 2, facts: ["commit_lost record", "step_completed record", "completed"] },
  ] as const;

  test.for(faults)("is looked up: $kind", async ({ kind, calls, facts }, { shop }) => {
    const proxy = await WireProxy.listen(shop.url);
    const pawl = shop.connect({ url: proxy.url });
    let called = 0;
    const hits: Promise<unknown>[] = [];
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", async (tx) => {
        called += 1;
        await insert(shop, tx, 1);
        if (called === 1) hits.push(proxy.inject({ kind, statement: "commit" }));
        return "sold";
      }),
    );
    await shop.work([sell], pawl);
    const run = await shop.pawl.start(sell);
    expect(await run.result()).toBe("sold");
    await hits[0];
    expect(called).toBe(calls);
    expect(await shop.ids()).toEqual([1]);
    expect(await shop.facts(run.id)).toEqual(facts);
    await pawl.close();
    await proxy[Symbol.asyncDispose]();
  });

  test("that comes after it was given up comes to nothing", async ({ shop }) => {
    // The record itself is held up on its way, until the transaction has been given up and done again.
    const proxy = await WireProxy.listen(shop.url);
    const slow = new pg.Pool({ connectionString: proxy.url, max: 1 });
    slow.on("error", () => {});
    const good = withPg(slow);
    const fast = withPg(shop.pool);
    let called = 0;
    const hits: Promise<Hit>[] = [];
    const late: Promise<unknown>[] = [];
    const on: typeof good = {
      ...good,
      begin(work, options) {
        if (called > 0) return fast.begin(work, options);
        hits.push(proxy.inject({ kind: "delay", statement: "record_in_transaction" }));
        const begun = good.begin(work, options);
        late.push(begun.catch((error: unknown) => error));
        const lost = new Error("gone");
        return Promise.race([begun, hits[0]!.then(() => Promise.reject(lost))]);
      },
    };
    const sell = workflow({ name: "sell", version: 1, retry: { attempts: 2, initial: 1 } }, async (ctx) =>
      ctx.transaction("record", (tx) => insert(shop, tx, ++called).then(() => called), { on }),
    );
    await shop.work([sell]);
    const run = await shop.pawl.start(sell);
    expect(await run.result()).toBe(2);
    (await hits[0])!.letGo();
    await late[0];
    expect(await shop.ids()).toEqual([2]);
    await slow.end();
    await proxy[Symbol.asyncDispose]();
  });
});

describe("where a transaction goes", () => {
  test("in memory there is none", async ({ shop }) => {
    const pawl = shop.connect({ memory: true });
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) =>
      ctx.transaction("record", () => 1),
    );
    await shop.work([sell], pawl);
    await expect((await pawl.start(sell)).result()).rejects.toMatchObject({
      cause: { code: "INVALID_TRANSACTION" },
    });
  });

  test("a pool of the same database is as good as Pawl's own", async ({ shop }) => {
    const on = withPg(shop.pool);
    const sell = workflow({ name: "sell", version: 1 }, async (ctx) =>
      ctx.transaction(
        "record",
        async (client) => {
          const { rows } = await client.query<{ level: string }>("show transaction_isolation");
          await insert(shop, client, 1);
          return rows;
        },
        { on, isolation: "repeatable read" },
      ),
    );
    await shop.work([sell]);
    expect(await (await shop.pawl.start(sell)).result()).toEqual([
      { transaction_isolation: "repeatable read" },
    ]);
    expect(await shop.ids()).toEqual([1]);
  });

  test("with bad options it is refused before anything runs", async ({ shop }) => {
    const bad: readonly [unknown, unknown][] = [
      [() => 1, { on: shop.pool }],
      [() => 1, { isolation: "chaos" }],
      [() => 1, { conflictAttempts: 0 }],
      [() => 1, { conflictAttempt: 3 }],
      ["no function", {}],
    ];
    const sell = workflow({ name: "sell", version: 1, retry: once }, async (ctx) => {
      const codes: unknown[] = [];
      for (const [call, options] of bad)
        await ctx.transaction("record", call as never, options as never).catch((error: unknown) => {
          codes.push((error as { code: string }).code);
        });
      return codes;
    });
    await shop.work([sell]);
    expect(await (await shop.pawl.start(sell)).result()).toEqual(bad.map(() => "INVALID_OPTION"));
  });

  test.skipIf(pgbouncer === undefined)("it may lead through a transaction pooler", async ({ shop }) => {
    const pooler = await startPgBouncer(shop.url);
    const pawl = shop.connect({ url: pooler.url });
    try {
      const sell = workflow({ name: "sell", version: 1 }, async (ctx, id: number) =>
        ctx.transaction("record", (tx) => insert(shop, tx, id).then(() => id)),
      );
      await shop.work([sell], pawl);
      const ids = [1, 2, 3, 4, 5, 6, 7, 8];
      const runs = await Promise.all(ids.map((id) => pawl.start(sell, id)));
      expect(await Promise.all(runs.map((run) => run.result()))).toEqual(ids);
      expect(await shop.ids()).toEqual(ids);
    } finally {
      await pawl.close();
      await pooler.stop();
    }
  });
});
