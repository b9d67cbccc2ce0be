import { workflow } from "../../packages/pawl/src/index.ts";
import { WireProxy } from "../chaos/wire-proxy.ts";
import { comesTrue, within, type Props, type Scene } from "./scene.ts";

/** Ends when it is told to. */
const patient = workflow({ name: "patient", version: 1, retry: { attempts: 1 } }, async (ctx) => {
  if ((await ctx.waitForSignal("word")) === "fail") throw new Error("as told");
});

/** How many runs, messages and lives there are. */
async function countRows(props: Props): Promise<readonly number[]> {
  const [counts = []] = await props.ask<readonly number[]>(
    `select array[(select count(*) from {schema}.run), (select count(*) from {schema}.inbox),
                  (select count(*) from {schema}.event where kind = 'redriven')]::integer[]`,
  );
  return counts;
}

/** The client repeats a call that was not answered, and the caller has given no key to know it by. */
const clientsCalls: Scene = {
  name: "a call whose answer is lost is carried out once, with a key or without",
  invariant: "I12",
  async play(props, report) {
    const proxy = props.own(await WireProxy.listen(props.url));
    const pawl = props.connect({ url: proxy.url });

    const lose = async <Answer>(
      statement: string,
      act: () => Promise<Answer>,
      ...expected: readonly number[]
    ): Promise<Answer | null> => {
      const before = await countRows(props);
      const lost = proxy.inject({ kind: "lose", statement });
      const answer = await within(act());
      const isLost = (await within(lost, 1_000)) !== null;
      const added = (await countRows(props)).map((count, index) => count - (before[index] ?? 0));
      if (answer === null || answer instanceof Error || !isLost)
        report("I1", `${statement} was not carried out once its answer was lost`, { isLost }, String(answer));
      else if (JSON.stringify(added) !== JSON.stringify(expected))
        report("I12", `${statement} took effect other than once`, { added, expected });
      return answer instanceof Error ? null : answer;
    };

    const run = await lose("create_runs", () => pawl.start(patient), 1, 0, 0);
    await lose("create_runs", () => pawl.startMany(patient, [{}, {}, {}]), 3, 0, 0);
    if (run === null) return;
    await lose("tell_runs", async () => run.signal("word", "fail"), 0, 1, 0);
    const terms = { key: "one", signal: "word", payload: "fail" } as const;
    await lose("signal_or_start", () => pawl.signalOrStart(patient, terms), 1, 1, 0);

    // It fails again before the call is repeated: that is another end, which nobody has asked to undo.
    await props.pawl.worker({ workflows: [patient] }).start();
    const hasFailed = (): Promise<boolean> => comesTrue(async () => (await run.status()) === "failed");
    if (!(await hasFailed())) report("I17", "a run that was told to fail has not");
    await lose("redrive_runs", () => run.retry(), 0, 0, 1);
    await hasFailed();
  },
};

/** What a holder writes, and is not told that it has, it writes again. */
const holdersCalls: Scene = {
  name: "a write of a holder whose answer is lost is carried out once",
  invariant: "I4",
  async play(props, report) {
    const proxy = props.own(await WireProxy.listen(props.url));
    const pawl = props.connect({ url: proxy.url });
    const child = workflow({ name: "child", version: 1 }, async () => "born");
    const writer = workflow({ name: "writer", version: 1 }, async (ctx) => {
      const stream = ctx.stream("items");
      for (const number of [1, 2, 3]) {
        await Promise.all([
          stream.write(number),
          ctx.publish("last", number),
          ctx.step("count", () => number),
        ]);
        await ctx.call(child);
      }
      return ctx.waitForSignal("word");
    });
    const lost = ["record_events", "park_runs", "end_runs"].map((statement) =>
      proxy.inject({ kind: "lose", statement }),
    );
    await pawl.worker({ workflows: [writer, child] }).start();
    const run = await props.pawl.start(writer);
    await run.signal("word", "enough");
    const word = await within(run.result());
    const areLost = (await within(Promise.all(lost))) !== null;
    const [seqs, items, children] = await Promise.all([
      props.ask<number>("select seq from {schema}.event where run_id = $1 order by seq", [run.id]),
      props.ask<number>(
        "select (data #>> '{}')::integer from {schema}.stream where run_id = $1 order by position",
        [run.id],
      ),
      props.ask<string>("select status from {schema}.runs where parent_id = $1", [run.id]),
    ]);
    const facts = await props.factsOf(run.id);
    const isDense = seqs.every((seq, index) => seq === index + 1);
    const isOnce = new Set(facts).size === facts.length;
    const seen = JSON.stringify([word, items, children]);
    const expected = JSON.stringify(["enough", [1, 2, 3], Array.from({ length: 3 }, () => "completed")]);
    if (!areLost || !isDense || !isOnce || seen !== expected)
      report("I4", "a write that was repeated took effect other than once", { areLost, facts, seen });
  },
};

export const lostAnswers: readonly Scene[] = [clientsCalls, holdersCalls];
