import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { createPawl, workflow } from "../../src/index.ts";
import { confirm, deliver, inTransaction, useShop } from "./shop.ts";

const shop = useShop();

const uniqueKey = (): string => `key:${randomBytes(6).toString("hex")}`;

/** Resolves when this connection waits for a lock that another one holds. */
async function isWaiting(client: pg.PoolClient): Promise<void> {
  const { processID } = client as unknown as { readonly processID: number };
  const waits = async (): Promise<unknown> =>
    (await shop.pool.query("select wait_event_type from pg_stat_activity where pid = $1", [processID]))
      .rows[0];
  await expect.poll(waits, { timeout: 5_000, interval: 10 }).toEqual({ wait_event_type: "Lock" });
}

describe("what is no transaction", () => {
  const strangers: readonly (readonly [string, () => unknown, string])[] = [
    ["a pool", () => shop.pool, "is a pool"],
    ["null", () => null, "must be a transaction"],
    ["an object without query", () => ({}), "has no query(text, values)"],
  ];

  test.for(strangers)("%s is refused", async ([, tx, message]) => {
    const refusal = { code: "INVALID_TRANSACTION", message: expect.stringContaining(message) };
    await expect(shop.pawl.start(confirm, 1, { tx: tx() as never })).rejects.toMatchObject(refusal);
    const run = await shop.pawl.start(deliver);
    await expect(run.signal("shipped", 1, { tx: tx() as never })).rejects.toMatchObject(refusal);
    await expect(run.cancel({ tx: tx() as never })).rejects.toMatchObject(refusal);
    const asked = { key: uniqueKey(), signal: "shipped", tx: tx() as never };
    await expect(shop.pawl.signalOrStart(deliver, asked)).rejects.toMatchObject(refusal);
  });

  test("a connection that has not begun one is refused", async () => {
    const client = await shop.pool.connect();
    await expect(shop.pawl.start(confirm, 1, { tx: client })).rejects.toMatchObject({
      code: "INVALID_TRANSACTION",
      message: expect.stringContaining('await client.query("begin")'),
    });
    client.release();
  });

  test.for([
    ["bare rows", [{ answer: "1" }]],
    ["rows as arrays", { rows: [["1"]] }],
    ["nothing", undefined],
  ] as const)("a handle that answers %s is refused", async ([, answer]) => {
    const tx = { query: () => Promise.resolve(answer) };
    await expect(shop.pawl.start(confirm, 1, { tx: tx as never })).rejects.toMatchObject({
      code: "INVALID_TRANSACTION",
      message: expect.stringContaining("{ rows }"),
    });
  });

  test("in memory there are none", async () => {
    await using pawl = createPawl({ memory: true });
    await inTransaction(shop.pool, async (tx) => {
      await expect(pawl.start(confirm, 1, { tx })).rejects.toMatchObject({ code: "INVALID_TRANSACTION" });
    });
  });
});

describe("a transaction that can take nothing", () => {
  test("is refused when it is read-only", async () => {
    const act = async (tx: pg.PoolClient): Promise<void> => {
      await expect(shop.pawl.start(confirm, 1, { tx })).rejects.toMatchObject({
        code: "INVALID_TRANSACTION",
        message: expect.stringContaining("read-only"),
        details: { sqlState: "25006" },
      });
    };
    await inTransaction(shop.pool, act, "begin read only");
  });

  test("is refused when it has failed before", async () => {
    await inTransaction(shop.pool, async (tx) => {
      await expect(tx.query("select 1 / 0")).rejects.toThrow("division by zero");
      await expect(shop.pawl.start(confirm, 1, { tx })).rejects.toMatchObject({
        code: "INVALID_TRANSACTION",
        message: expect.stringContaining("failed before"),
      });
    });
  });

  test("is refused with a hint when its role has no rights", async () => {
    const role = `stranger_${randomBytes(6).toString("hex")}`;
    await shop.pool.query(`create role ${role}`);
    await inTransaction(shop.pool, async (tx) => {
      await tx.query(`set local role ${role}`);
      await expect(shop.pawl.start(confirm, 1, { tx })).rejects.toMatchObject({
        code: "DATABASE",
        message: expect.stringContaining("grantTo"),
      });
    });
    await shop.pool.query(`drop role ${role}`);
  });
});

describe("a key that another transaction is using", () => {
  test("is waited for, and belongs to whoever commits", async () => {
    const key = uniqueKey();
    await inTransaction(shop.pool, async (first) => {
      const run = await shop.pawl.start(confirm, 1, { tx: first, key });
      await inTransaction(shop.pool, async (second) => {
        const waiting = shop.pawl.start(confirm, 1, { tx: second, key });
        await isWaiting(second);
        // Longer than our own batches would wait.
        await first.query("select pg_sleep(0.4)");
        await first.query("commit");
        expect((await waiting).id).toBe(run.id);
      });
    });
  });

  test("is free when that one rolls back", async () => {
    const key = uniqueKey();
    await inTransaction(shop.pool, async (first) => {
      const run = await shop.pawl.start(confirm, 1, { tx: first, key });
      await inTransaction(shop.pool, async (second) => {
        const waiting = shop.pawl.start(confirm, 2, { tx: second, key });
        await isWaiting(second);
        await first.query("rollback");
        const other = await waiting;
        expect(other.id).not.toBe(run.id);
        await second.query("commit");
        expect(await shop.pawl.get(other.id)).toMatchObject({ status: "pending", input: 2 });
      });
    });
  });

  test("is waited for no longer than the caller's own lock_timeout, and the error is the driver's", async () => {
    const key = uniqueKey();
    await inTransaction(shop.pool, async (first) => {
      await shop.pawl.start(confirm, 1, { tx: first, key });
      await inTransaction(shop.pool, async (second) => {
        await second.query("set local lock_timeout = '20ms'");
        const starting = shop.pawl.start(confirm, 1, { tx: second, key });
        await expect(starting).rejects.toBeInstanceOf(pg.DatabaseError);
        await expect(starting).rejects.toMatchObject({ code: "55P03" });
      });
    });
  });

  test.for(["repeatable read", "serializable"])(
    "is a serialization failure under %s, which the caller's retry gets over",
    async (isolation) => {
      const key = uniqueKey();
      const begin = `begin isolation level ${isolation}`;
      await inTransaction(
        shop.pool,
        async (tx) => {
          // The snapshot is taken before the key is.
          await tx.query("select count(*) from purchase");
          const run = await shop.pawl.start(confirm, 1, { key });
          await expect(shop.pawl.start(confirm, 1, { tx, key })).rejects.toMatchObject({ code: "40001" });
          await tx.query("rollback");
          await tx.query(begin);
          expect((await shop.pawl.start(confirm, 1, { tx, key })).id).toBe(run.id);
          expect((await shop.pawl.start(confirm, 1, { tx, key })).id).toBe(run.id);
          await tx.query("commit");
        },
        begin,
      );
    },
  );
});

describe("a start in a transaction", () => {
  test("uses no other connection", async () => {
    const pool = new pg.Pool({ connectionString: shop.database.url, max: 1 });
    await using pawl = createPawl({ pool });
    await inTransaction(pool, async (tx) => {
      const run = await pawl.start(deliver, undefined, { tx });
      await run.signal("shipped", 1, { tx });
      await run.cancel({ tx });
      await tx.query("commit");
      const { rows } = await tx.query("select topic from pawl.inbox where run_id = $1 order by topic", [
        run.id,
      ]);
      expect(rows).toEqual([{ topic: "cancel" }, { topic: "signal:shipped" }]);
    });
    await pawl.close();
    await pool.end();
  });

  test("locks no run: its neighbours go on while it is open", async () => {
    const run = await shop.pawl.start(deliver);
    await inTransaction(shop.pool, async (tx) => {
      await run.signal("shipped", "later", { tx });
      await run.cancel({ tx });
      await run.signal("shipped", "now");
      expect(await run.history()).toEqual([]);
      const locks = await tx.query(
        `select l.mode from pg_locks l
          where l.pid = pg_backend_pid() and l.relation = 'pawl.run'::regclass and l.mode <> 'AccessShareLock'`,
      );
      expect(locks.rows).toEqual([]);
    });
  });

  test("takes no option it does not know", async () => {
    const run = await shop.pawl.start(deliver);
    await inTransaction(shop.pool, async (tx) => {
      await expect(run.cancel({ tx, resaon: "late" } as never)).rejects.toThrow('Did you mean "reason"?');
      await expect(run.signal("shipped", 1, { trx: tx } as never)).rejects.toThrow('Did you mean "tx"?');
      await expect(shop.pawl.start(deliver, undefined, { trx: tx } as never)).rejects.toThrow('"tx"');
    });
  });

  test("answers a duplicate as outside of one, when the run has ended since", async () => {
    const run = await shop.pawl.start(deliver);
    await run.signal("shipped", 1, { idempotencyKey: "form" });
    await run.cancel();
    expect(await run.status()).toBe("cancelled");
    await inTransaction(shop.pool, async (tx) => {
      await run.signal("shipped", 1, { tx, idempotencyKey: "form" });
      await run.cancel({ tx });
      await expect(run.signal("shipped", 1, { tx })).rejects.toMatchObject({ code: "RUN_ENDED" });
    });
  });
});

describe("a commit that comes late", () => {
  // Polls are out of reach: only the notification and the full look that follows it can find the run.
  const soonMs = 10_000;
  const rarePolls = { pollInterval: "1h" } as const;

  test("is found at once by a worker whose work has gone on meanwhile", async () => {
    await using pawl = createPawl({ url: shop.database.url });
    const worker = pawl.worker({ workflows: [confirm], ...rarePolls });
    await worker.start();
    await inTransaction(shop.pool, async (tx) => {
      const late = await pawl.start(confirm, "late", { tx });
      await tx.query("update pawl.ready set ready_at = ready_at - interval '10 s' where run_id = $1", [
        late.id,
      ]);
      for (let n = 0; n < 20; n++) await (await pawl.start(confirm, n)).result();
      await tx.query("commit");
      await expect(late.result({ signal: AbortSignal.timeout(soonMs) })).resolves.toBe("late");
    });
  });

  test("is found soon by a worker that has more to do than it can", async () => {
    await using pawl = createPawl({ url: shop.database.url });
    const busy = workflow({ name: "confirm", version: 1 }, (_, order: unknown) => pause(5, order));
    const worker = pawl.worker({ workflows: [busy], concurrency: 4, ...rarePolls });
    await worker.start();
    await inTransaction(shop.pool, async (tx) => {
      const late = await pawl.start(confirm, "late", { tx });
      await tx.query("update pawl.ready set ready_at = ready_at - interval '10 s' where run_id = $1", [
        late.id,
      ]);
      let answered = 0;
      let isFound = false;
      const callers = Array.from({ length: 100 }, async () => {
        for (; !isFound; answered++) await (await pawl.start(confirm)).result();
      });
      try {
        await expect.poll(() => answered).toBeGreaterThan(callers.length);
        await tx.query("commit");
        await late.result({ signal: AbortSignal.timeout(soonMs) });
      } finally {
        isFound = true;
        await Promise.all(callers);
      }
    });
  });

  test("of a signal wakes the run that waits for it", async () => {
    await using pawl = createPawl({ url: shop.database.url });
    await pawl.worker({ workflows: [deliver], ...rarePolls }).start();
    await inTransaction(shop.pool, async (tx) => {
      const run = await pawl.start(deliver);
      await run.signal("shipped", "late", { tx });
      await expect.poll(() => run.status()).toBe("waiting");
      await tx.query("commit");
      await expect(run.result({ signal: AbortSignal.timeout(soonMs) })).resolves.toBe("late");
    });
  });
});
