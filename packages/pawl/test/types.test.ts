import type { NodePgDatabase } from "drizzle-orm/node-postgres";
import type { Knex } from "knex";
import type { Kysely, Transaction as KyselyTransaction } from "kysely";
import type pg from "pg";
import type { Sql, TransactionSql } from "postgres";
import type { DataSource, EntityManager } from "typeorm";
import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  fromDrizzle,
  withDrizzle,
  withKnex,
  withKysely,
  withPg,
  withPostgresJs,
  withPrisma,
  withTypeOrm,
} from "../src/adapters/index.ts";
import { ref } from "../src/client/ref.ts";
import type { RunHandle } from "../src/client/run-handle.ts";
import type { Transaction } from "../src/core/transaction.ts";
import type {
  InputOf,
  OutputOf,
  PublishedOf,
  PublishedSchemas,
  SignalSchemas,
  SignalsOf,
  UpdatesOf,
} from "../src/core/workflow-ref.ts";
import type { Context } from "../src/runtime/context.ts";
import { workflow, type Workflow } from "../src/runtime/workflow.ts";
import type { OwnTransaction } from "../src/store/holder-transactions.ts";

test("with an input schema, the function gets its output type, and the caller gives its input type", () => {
  const parsed = workflow(
    {
      name: "parsed",
      version: 1,
      input: z.object({ id: z.string().transform(Number), tag: z.string().default("none") }),
    },
    async (_ctx, input) => {
      expectTypeOf(input).toEqualTypeOf<{ id: number; tag: string }>();
      return { double: input.id * 2 };
    },
  );
  expectTypeOf<InputOf<typeof parsed>>().toEqualTypeOf<{ id: string; tag?: string | undefined }>();
  expectTypeOf<OutputOf<typeof parsed>>().toEqualTypeOf<{ double: number }>();
});

test("without a schema, the input is typed on the parameter", () => {
  const typed = workflow({ name: "typed", version: 1 }, async (_ctx, input: { readonly id: number }) =>
    String(input.id),
  );
  expectTypeOf<InputOf<typeof typed>>().toEqualTypeOf<{ readonly id: number }>();
  expectTypeOf<OutputOf<typeof typed>>().toEqualTypeOf<string>();
});

test("without an input, there is none to give", () => {
  const none = workflow({ name: "none", version: 1 }, async () => {});
  expectTypeOf<InputOf<typeof none>>().toEqualTypeOf<undefined>();
  expectTypeOf<OutputOf<typeof none>>().toEqualTypeOf<void>();
});

test("a function that is not async has its plain return type for an output", () => {
  const sync = workflow({ name: "sync", version: 1 }, (_ctx, n: number) => n + 1);
  expectTypeOf<OutputOf<typeof sync>>().toEqualTypeOf<number>();
});

test("declared signals have the output type of their schema, or null with a timeout", () => {
  const signals = { shipped: z.object({ at: z.string().transform(Number) }), refused: z.literal("no") };
  const declared = workflow({ name: "declared", version: 1, signals }, async (ctx) => {
    expectTypeOf(await ctx.waitForSignal("shipped")).toEqualTypeOf<{ at: number }>();
    expectTypeOf(await ctx.waitForSignal("refused", { timeout: "1d" })).toEqualTypeOf<"no" | null>();
    // @ts-expect-error: not declared
    void ctx.waitForSignal("lost");
  });
  expectTypeOf<SignalsOf<typeof declared>>().toEqualTypeOf<typeof signals>();
});

test("a signal's payload may be left out only where its schema takes undefined", () => {
  type Handle = RunHandle<void, { go: typeof needed; stop: typeof optional }>;
  const needed = z.object({ at: z.number() });
  const optional = z.string().optional();
  const send = (run: Handle, any: RunHandle): void => {
    void run.signal("go", { at: 1 });
    void run.signal("stop");
    void run.signal("stop", "now", { idempotencyKey: "a" });
    void any.signal("whatever");
    // @ts-expect-error: the payload is missing
    void run.signal("go");
    // @ts-expect-error: the payload is of another type
    void run.signal("go", "now");
  };
  expectTypeOf(send).toBeFunction();
});

test("published values have the types of their schemas, on both sides", () => {
  const published = { progress: z.object({ at: z.string().transform(Number) }) };
  const declared = workflow({ name: "declared", version: 1, published }, async (ctx) => {
    await ctx.publish("progress", { at: "1" });
    await ctx.scope("inner", (inner) => inner.publish("progress", { at: "2" }));
    // @ts-expect-error: not declared
    void ctx.publish("progres", { at: "1" });
    // @ts-expect-error: of another type
    void ctx.publish("progress", { at: 1 });
  });
  const read = async (
    run: RunHandle<void, SignalsOf<typeof declared>, PublishedOf<typeof declared>>,
    any: RunHandle,
  ): Promise<void> => {
    expectTypeOf(await run.published("progress")).toEqualTypeOf<{ at: number } | undefined>();
    expectTypeOf(await run.published()).toEqualTypeOf<{ readonly progress?: { at: number } }>();
    expectTypeOf(await any.published("whatever")).toEqualTypeOf<unknown>();
    // @ts-expect-error: not declared
    void run.published("progres");
  };
  expectTypeOf(read).toBeFunction();
  workflow({ name: "undeclared", version: 1 }, async (ctx) => ctx.publish("whatever", 1));
});

test("updates have the types of their schemas, on both sides", () => {
  const updates = {
    move: { input: z.object({ by: z.string().transform(Number) }), output: z.string().transform(Number) },
    stop: { input: z.undefined() },
  };
  const declared = workflow({ name: "declared", version: 1, updates }, async (ctx) => {
    ctx.onUpdate("move", async ({ by }, inner) => {
      expectTypeOf(by).toEqualTypeOf<number>();
      return inner.step("move", () => "1");
    });
    ctx.onUpdate("stop", () => {});
    // @ts-expect-error: not declared
    ctx.onUpdate("mvoe", () => "1");
    // @ts-expect-error: an answer of another type
    ctx.onUpdate("move", () => 1);
  });
  const elsewhere = ref<typeof declared>("declared", 1);
  expectTypeOf<UpdatesOf<typeof elsewhere>>().toEqualTypeOf<typeof updates>();
  const send = async (
    run: RunHandle<void, SignalSchemas, PublishedSchemas, UpdatesOf<typeof elsewhere>>,
    any: RunHandle,
  ): Promise<void> => {
    expectTypeOf(await run.update("move", { by: "1" })).toEqualTypeOf<number>();
    expectTypeOf(await run.update("stop")).toEqualTypeOf<unknown>();
    expectTypeOf(await any.update("whatever", 1, { timeout: "1s" })).toEqualTypeOf<unknown>();
    // @ts-expect-error: the payload is missing
    void run.update("move");
    // @ts-expect-error: the payload is of another type
    void run.update("move", { by: 1 });
    // @ts-expect-error: not declared
    void run.update("mvoe", { by: "1" });
  };
  expectTypeOf(send).toBeFunction();
  workflow({ name: "undeclared", version: 1 }, async (ctx) => {
    ctx.onUpdate("any", (n: number) => n);
  });
});

test("undeclared signals are whatever the code says they are", () => {
  workflow({ name: "undeclared", version: 1 }, async (ctx) => {
    expectTypeOf(await ctx.waitForSignal("any")).toEqualTypeOf<unknown>();
    expectTypeOf(await ctx.waitForSignal<number>("any", { timeout: 5 })).toEqualTypeOf<number | null>();
  });
});

test("steps and children are typed by what they return", () => {
  const child = workflow(
    { name: "child", version: 1, input: z.object({ n: z.number() }) },
    async (_ctx, { n }) => [n],
  );
  const plain = workflow({ name: "plain", version: 1 }, async () => "text");
  workflow({ name: "parent", version: 1 }, async (ctx) => {
    expectTypeOf(await ctx.step("sync", () => 1)).toEqualTypeOf<number>();
    const undone = ctx.step("undone", async ({ attempt }) => ({ id: attempt, name: "" }), {
      undo: (result, { inDoubt }) => {
        expectTypeOf(result).toEqualTypeOf<{ id: number; name: string }>();
        expectTypeOf(inDoubt).toEqualTypeOf<boolean>();
      },
    });
    expectTypeOf(await undone).toEqualTypeOf<{ id: number; name: string }>();
    const narrow = ctx.step("narrow", async ({ attempt }) => ({ id: attempt, name: "" }), {
      undo: (result: { readonly id: number }) => result.id,
    });
    expectTypeOf(await narrow).toEqualTypeOf<{ id: number; name: string }>();
    // @ts-expect-error: the undo takes what the step does not give
    await ctx.step("wrong", () => "text", { undo: (result: number) => result });
    // @ts-expect-error: there is no such option
    await ctx.step("unknown", () => "text", { retries: 3 });
    expectTypeOf(await ctx.step("async", async ({ signal }) => signal.aborted)).toEqualTypeOf<boolean>();
    expectTypeOf(await ctx.call(child, { n: 1 })).toEqualTypeOf<number[]>();
    expectTypeOf(await ctx.call(plain)).toEqualTypeOf<string>();
    const handle = await ctx.start(child, { n: 1 }, { detached: true, timeout: "1h" });
    expectTypeOf(await handle.result()).toEqualTypeOf<number[]>();
    expectTypeOf(
      await ctx.map("m", [1, 2], (item, inner) => inner.step("s", () => String(item))),
    ).toEqualTypeOf<string[]>();
    const first = await ctx.race({
      sleep: ctx.sleep("1d"),
      step: ctx.step("s", () => 7),
      chain: async (inner) => (await inner.call(plain)).length > 1,
    });
    expectTypeOf(first).toEqualTypeOf<
      | { readonly winner: "sleep"; readonly value: void }
      | { readonly winner: "step"; readonly value: number }
      | { readonly winner: "chain"; readonly value: boolean }
    >();
    if (first.winner === "step") expectTypeOf(first.value).toEqualTypeOf<number>();
    // @ts-expect-error a child's input is checked
    await ctx.start(child, { n: "one" });
    // @ts-expect-error only what is started can be detached
    await ctx.call(child, { n: 1 }, { detached: true });
    expectTypeOf(await ctx.call(plain, undefined, { priority: 1 })).toEqualTypeOf<string>();
    // @ts-expect-error: the input is of another type
    void ctx.call(child, { n: "1" });
    // @ts-expect-error: the input is missing
    void ctx.call(child);
  });
});

test("a list of workflows takes any of them, and a plain context any body", () => {
  const list: readonly Workflow[] = [
    workflow({ name: "a", version: 1, input: z.string() }, async (_ctx, text) => text),
    workflow(
      { name: "b", version: 1, signals: { s: z.number() } },
      async (ctx, n: number) => n + (await ctx.waitForSignal("s")),
    ),
  ];
  const body = async (ctx: Context): Promise<number> => ctx.now();
  const c = workflow({ name: "c", version: 1 }, body);
  expectTypeOf<OutputOf<typeof c>>().toEqualTypeOf<number>();
  expectTypeOf(list).toExtend<readonly { readonly name: string }[]>();
});

test("options are checked where they are written", () => {
  // @ts-expect-error: no such option
  const misspelt = (): unknown => workflow({ name: "a", version: 1, retries: 3 }, async () => {});
  // @ts-expect-error: a version is missing
  const missing = (): unknown => workflow({ name: "a" }, async () => {});
  expectTypeOf(misspelt).toBeFunction();
  expectTypeOf(missing).toBeFunction();
});

test("a client of pg is a transaction, a transaction of another library is one once it is wrapped", () => {
  const pass = (tx: Transaction): Transaction => tx;
  const use = (client: pg.Client, pooled: pg.PoolClient, db: NodePgDatabase): void => {
    pass(client);
    pass(pooled);
    void db.transaction(async (tx) => {
      pass(fromDrizzle(tx));
      // @ts-expect-error: its query is something else
      pass(tx);
      // @ts-expect-error: in no transaction
      fromDrizzle(db);
    });
  };
  expectTypeOf(use).toBeFunction();
});

test("continueAs never returns, and takes the input of the workflow it goes on as", () => {
  const newer = workflow({ name: "loop", version: 2 }, async (_ctx, n: number) => n);
  const looping = workflow({ name: "loop", version: 1 }, async (ctx, isLast: boolean): Promise<string> => {
    if (isLast) return "over";
    expectTypeOf(ctx.patch("one")).toEqualTypeOf<boolean>();
    expectTypeOf(() => ctx.continueAs(1, newer)).returns.toEqualTypeOf<Promise<never>>();
    // @ts-expect-error: the newer one takes a number
    void (() => ctx.continueAs("one", newer));
    // @ts-expect-error: no such option
    void (() => ctx.continueAs(true, { versoin: 2 }));
    return ctx.continueAs(true);
  });
  expectTypeOf<OutputOf<typeof looping>>().toEqualTypeOf<string>();
});
test("a transaction's function gets what its library calls a transaction", () => {
  const typed = workflow({ name: "typed", version: 1 }, async (ctx) => {
    const own = await ctx.transaction("own", async (tx) => {
      expectTypeOf(tx).toEqualTypeOf<OwnTransaction>();
      const { rows } = await tx.query<{ id: number }>("select 1 as id", []);
      return rows[0]?.id ?? null;
    });
    expectTypeOf(own).toEqualTypeOf<number | null>();
    return own;
  });
  expectTypeOf<OutputOf<typeof typed>>().toEqualTypeOf<number | null>();

  const libraries = async (
    ctx: Context,
    pool: pg.Pool,
    drizzle: NodePgDatabase<{ readonly a: never }>,
    kysely: Kysely<{ orders: { id: number } }>,
    knex: Knex,
    typeOrm: DataSource,
    sql: Sql,
    prisma: PrismaLike,
  ) => {
    await ctx.transaction("pg", (tx) => expectTypeOf(tx).toEqualTypeOf<pg.PoolClient>(), {
      on: withPg(pool),
    });
    await ctx.transaction(
      "drizzle",
      (tx) => expectTypeOf(tx).toEqualTypeOf<Parameters<Parameters<typeof drizzle.transaction>[0]>[0]>(),
      { on: withDrizzle(drizzle) },
    );
    await ctx.transaction(
      "kysely",
      (trx) => expectTypeOf(trx).toEqualTypeOf<KyselyTransaction<{ orders: { id: number } }>>(),
      { on: withKysely(kysely) },
    );
    await ctx.transaction("knex", (trx) => expectTypeOf(trx).toExtend<Knex.Transaction>(), {
      on: withKnex(knex),
    });
    await ctx.transaction("typeorm", (manager) => expectTypeOf(manager).toEqualTypeOf<EntityManager>(), {
      on: withTypeOrm(typeOrm),
    });
    await ctx.transaction("postgres.js", (tx) => expectTypeOf(tx).toExtend<TransactionSql>(), {
      on: withPostgresJs(sql),
    });
    await ctx.transaction(
      "prisma",
      (tx) => expectTypeOf(tx.order).toEqualTypeOf<{ create(): Promise<void> }>(),
      {
        on: withPrisma(prisma),
      },
    );
    // @ts-expect-error: not a transactor
    void ctx.transaction("bare", () => 1, { on: pool });
    // @ts-expect-error: no such isolation
    void ctx.transaction("loose", () => 1, { isolation: "chaos" });
  };
  void libraries;
});

/** As Prisma generates it. */
interface PrismaLike {
  $connect(): Promise<void>;
  $transaction<P extends readonly Promise<unknown>[]>(queries: [...P]): Promise<unknown[]>;
  $transaction<R>(
    work: (tx: PrismaLikeTransaction) => Promise<R>,
    options?: {
      readonly maxWait?: number;
      readonly timeout?: number;
      readonly isolationLevel?: "Serializable";
    },
  ): Promise<R>;
}

interface PrismaLikeTransaction {
  readonly order: { create(): Promise<void> };
  $queryRawUnsafe<T = unknown>(text: string, ...values: unknown[]): Promise<T>;
}

test("parts of the code that have contexts of their own keep what the workflow declares", () => {
  const declared = workflow(
    {
      name: "declared",
      version: 1,
      published: { stage: z.enum(["one", "two"]) },
      signals: { go: z.number() },
    },
    async (ctx) => {
      await ctx.map("m", [1], (_item, inner) => inner.publish("stage", "one"));
      // @ts-expect-error: no such stage
      await ctx.map("m", [1], (_item, inner) => inner.publish("stage", "three"));
      const first = await ctx.race({ go: (branch) => branch.waitForSignal("go"), late: ctx.sleep("1d") });
      if (first.winner === "go") expectTypeOf(first.value).toEqualTypeOf<number>();
      // @ts-expect-error: no such signal
      await ctx.race({ stop: (branch) => branch.waitForSignal("stop") });
    },
  );
  void declared;
});
