import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  dag,
  quorum,
  ref,
  settled,
  workflow,
  type Graph,
  type InputOf,
  type InputReference,
  type Node,
  type OutputOf,
  type Settled,
} from "../../src/index.ts";

interface Rows {
  readonly count: number;
}

const extract = workflow({ name: "extract", version: 1 }, async (_, { day }: { day: string }) => ({
  count: day.length,
}));
const clean = workflow({ name: "clean", version: 1 }, async (_, { rows }: { rows: Rows }) => rows);
const mirror = workflow(
  { name: "mirror", version: 1 },
  async (_, { region }: { region: string; rows: Rows }) => `${region} is done`,
);
const audit = workflow(
  { name: "audit", version: 1 },
  async (_, { copies }: { rows: Rows; copies: Settled<string[]> }) => ({ ok: copies.status === "completed" }),
);
const load = workflow(
  { name: "load", version: 1 },
  async (_, { rows }: { rows: Rows; audit: { ok: boolean }; tags?: readonly string[] }) => rows.count,
);
const ping = workflow({ name: "ping", version: 1 }, async () => "pong" as const);
const double = workflow({ name: "double", version: 1 }, async (_, value: number) => value * 2);
const list = workflow({ name: "list", version: 1 }, async () => ["text"]);
const eager = workflow(
  { name: "eager", version: 1 },
  async (_, { rows }: { rows?: Rows | undefined; other: Rows | undefined }) => rows?.count ?? null,
);

const regions = ["eu", "us"];
const Day = z.object({ day: z.string(), limit: z.string().transform(Number), days: z.array(z.string()) });
const options = { name: "nightly", version: 1, input: Day } as const;

test("types flow from the input through the nodes to the result", () => {
  const nightly = dag(options, (g) => {
    expectTypeOf(g.input.limit).toExtend<InputReference<number>>();
    const extracted = g.node("extract", extract, { day: g.input.day });
    expectTypeOf(extracted).toEqualTypeOf<Node<{ count: number }, false>>();
    const cleaned = g.node("clean", clean, { rows: extracted }, { queue: "cpu", priority: 10 });
    const copies = g.each("mirror", regions, mirror, (region) => ({ region, rows: cleaned }), {
      concurrency: 4,
    });
    expectTypeOf(copies).toEqualTypeOf<Node<string[], false>>();
    const audited = g.node(
      "audit",
      audit,
      { rows: cleaned, copies: settled(copies) },
      { join: quorum(2), when: ({ rows }) => rows.count > 0 },
    );
    return g.node("load", load, { rows: cleaned, audit: audited }, { when: ({ audit }) => audit.ok });
  });
  expectTypeOf<InputOf<typeof nightly>>().toEqualTypeOf<{ day: string; limit: string; days: string[] }>();
  expectTypeOf<OutputOf<typeof nightly>>().toEqualTypeOf<number | undefined>();
});

test("the result is what the returned node gives, and may be missing only behind a condition", () => {
  const plain = dag({ name: "plain", version: 1 }, (g) => g.node("ping", ping));
  expectTypeOf<OutputOf<typeof plain>>().toEqualTypeOf<"pong">();
  expectTypeOf<InputOf<typeof plain>>().toEqualTypeOf<undefined>();
  const typed = dag({ name: "typed", version: 1 }, (g: Graph<{ readonly n: number }>) =>
    g.node("double", double, g.input.n),
  );
  expectTypeOf<InputOf<typeof typed>>().toEqualTypeOf<{ readonly n: number }>();
  const several = dag({ name: "several", version: 1 }, (g) => {
    const one = g.node("one", ping);
    const two = g.node("two", double, 2, { when: (n) => n > 1 });
    const three = g.node("three", double, two);
    return { one, two: [two, settled(three)], text: "text" };
  });
  expectTypeOf<OutputOf<typeof several>>().toEqualTypeOf<{
    one: "pong";
    two: [number | undefined, Settled<number>];
    text: "text";
  }>();
  const inherited = dag({ name: "inherited", version: 1 }, (g) => {
    const one = g.node("one", double, 1, { when: (n) => n > 1 });
    const two = g.node("two", double, one);
    return g.node("three", ping, undefined, { after: [two] });
  });
  expectTypeOf<OutputOf<typeof inherited>>().toEqualTypeOf<"pong" | undefined>();
  const none = dag({ name: "none", version: 1 }, (g) => {
    g.node("ping", ping);
  });
  expectTypeOf<OutputOf<typeof none>>().toEqualTypeOf<undefined>();
});

test("graphs and refs are tasks too, and collections may be known at run time", () => {
  const inner = dag(options, (g) => g.each("days", g.input.days, extract, (day) => ({ day })));
  expectTypeOf<OutputOf<typeof inner>>().toEqualTypeOf<{ count: number }[]>();
  dag(options, (g) => {
    const list = g.node("inner", inner, { day: g.input.day, limit: "3", days: ["a", g.input.day] });
    const again = g.each("again", list, clean, (rows) => ({ rows: { count: rows.count } }));
    expectTypeOf(again).toEqualTypeOf<Node<Rows[], false>>();
    return g.node("far", ref<typeof load>("load", 1), { rows: { count: 1 }, audit: { ok: true } });
  });
});

test("what is missing, mistyped or unknown does not compile", () => {
  const wrong = (): unknown =>
    dag(options, (g) => {
      const rows = g.node("extract", extract, { day: g.input.day });
      // @ts-expect-error Property 'rows' is missing
      g.node("w", clean, {});
      // @ts-expect-error Type 'Node<number, false>' is not assignable to type 'Source<Rows>'
      g.node("w", clean, { rows: g.node("double", double, 2) });
      // @ts-expect-error a number is no text
      g.node("w", extract, { day: g.input.limit });
      // @ts-expect-error there is no such field of the input
      g.node("w", extract, { day: g.input.dya });
      // @ts-expect-error the task takes no such input
      g.node("w", clean, { rows, rowz: 1 });
      // @ts-expect-error a result that may be a failure is not the result
      g.node("w", clean, { rows: settled(rows) });
      // @ts-expect-error the input is missing
      g.node("w", clean);
      // @ts-expect-error there is no such option
      g.node("w", clean, { rows }, { queu: "cpu" });
      // @ts-expect-error priorities are numbers
      g.node("w", clean, { rows }, { priority: "high" });
      // @ts-expect-error there is no such join
      g.node("w", clean, { rows }, { join: "some" });
      // @ts-expect-error conditions see the node's input
      g.node("w", clean, { rows }, { when: ({ rowz }) => rowz });
      // @ts-expect-error no workflow
      g.node("w", async () => 1, {});
      // @ts-expect-error not a list
      g.each("w", g.input.day, clean, () => ({ rows }));
      // @ts-expect-error the item is a text
      g.each("w", regions, double, (region) => region);
      // @ts-expect-error only nodes can be waited for
      g.node("w", ping, undefined, { after: ["extract"] });
      // @ts-expect-error only nodes of a graph
      settled("extract");
      return rows;
    });
  expectTypeOf(wrong).returns.toBeUnknown();
});

test("with a join that does not wait for all, the task must take undefined", () => {
  const joins = (): unknown =>
    dag(options, (g) => {
      const rows = g.node("extract", extract, { day: g.input.day });
      const other = g.node("other", extract, { day: "today" });
      g.node("a", eager, { rows, other }, { join: "any" });
      g.node("b", eager, { rows, other }, { join: quorum(1) });
      // Both are there.
      g.node("c", audit, { rows, copies: { status: "skipped", reason: "none" } }, { join: quorum(1) });
      const count = g.node("count", double, 1);
      const ok = { ok: true };
      // @ts-expect-error the count may be missing
      g.node("d", clean, { rows: { count } }, { join: "any" });
      g.node("both", audit, { rows, copies: settled(g.node("list", list)) }, { join: quorum(2) });
      const more = { join: quorum(2), after: [other] } as const;
      // @ts-expect-error it may begin after the other one, and without rows
      g.node("three", audit, { rows, copies: settled(g.node("list", list)) }, more);
      // @ts-expect-error rows may be missing
      g.node("e", load, { rows, audit: ok, tags: [g.node("f", ping)] }, { join: quorum(1) });
      return other;
    });
  expectTypeOf(joins).returns.toBeUnknown();
});
