import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, PawlError, workflow, type Context, type PawlOptions } from "../../src/index.ts";
import { idle } from "./entries.ts";
import { junk } from "./junk.ts";
import { faultOf } from "./outcome.ts";
import { optionsOfRequests, requests } from "./requests.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

/** What the user's own function throws, or whoever awaits what it returned, is the user's own. */
const ofUser =
  /^(?:step that returns|step\(\{ publish|step\(name, …\)|transaction\(name, …\)|map\(name, items, …\)|scope\(name, …\)|race\()/;

const cases = Object.entries({
  ...requests,
  ...Object.fromEntries(
    Object.entries(optionsOfRequests).flatMap(([method, { names, ask }]) =>
      [...names.split(" "), "unknown"].map((name) => [
        `${method}({ ${name}: … })`,
        (ctx: Context, value: unknown) => ask(ctx, { [name]: value }),
      ]),
    ),
  ),
});

/** Asks for one thing with each piece of junk, one after the other; then waits, and so does it all again from its history. */
const messy = workflow({ name: "messy", version: 1, retry: { attempts: 1 } }, async (ctx, index: number) => {
  const [label, ask] = cases[index]!;
  const outcomes: string[] = [];
  for (const value of junk) {
    try {
      await ctx.scope("ask", async (inner) => ask(inner, value.make()));
      outcomes.push("accepted");
    } catch (error) {
      const fault = faultOf(error);
      outcomes.push(fault === "refused" || ofUser.test(label) ? "refused" : `${value.label}: ${fault}`);
    }
  }
  await ctx.waitForSignal("go on");
  return outcomes;
});

const places: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", () => ({ memory: true })],
  ["Postgres", (place) => ({ ...place, autoMigrate: true })],
];

describe.each(places)("with %s", (_name, optionsIn) => {
  test(
    "no junk given to a context does harm: the request rejects, and the run goes on, and can be replayed",
    { timeout: 120_000 },
    async ({ pool, schema }) => {
      await using pawl = createPawl(optionsIn({ pool, schema }));
      const worker = pawl.worker({ workflows: [messy, idle] });
      await worker.start();
      const runs = await pawl.startMany(
        messy,
        cases.map((_, input) => ({ input })),
      );
      const waitsToGoOn = async (id: string): Promise<boolean> =>
        (await pawl.get(id))?.wants?.includes("signal:go on") ?? false;
      await Promise.all(
        runs.map(async ({ id }, index) => {
          await expect
            .poll(() => waitsToGoOn(id), { timeout: 100_000, message: cases[index]![0] })
            .toBe(true);
        }),
      );
      await worker.stop();
      await pawl.worker({ workflows: [messy, idle] }).start();
      await Promise.all(
        runs.map(async (run, index) => {
          const label = cases[index]![0];
          await run.signal("go on");
          const outcomes = await run.result();
          expect([label, ...outcomes.filter((each) => each !== "accepted" && each !== "refused")]).toEqual([
            label,
          ]);
          expect([label, outcomes.length]).toEqual([label, junk.length]);
          const history = await run.history();
          expect(history.map(({ seq }) => seq)).toEqual(history.map((_, place) => place + 1));
        }),
      );
    },
  );
});

test("an option of a request that is misspelt is refused, and the right one is named", async () => {
  await using pawl = createPawl({ memory: true });
  const slips = workflow({ name: "slips", version: 1 }, async (ctx) => {
    const wrong: string[] = [];
    for (const [method, { names, ask }] of Object.entries(optionsOfRequests)) {
      for (const name of names.split(" ")) {
        const message = await refusal(() => ask(ctx, { [name + name.at(-1)!]: Symbol("no version") }));
        if (!message.includes(`${name}"?`)) wrong.push(`${method}: ${name}: ${message}`);
      }
      const message = await refusal(() => ask(ctx, { "neither this nor that option": 1.5 }));
      const known = /Known are (.+?)\.(?:\n|$)/.exec(message)?.[1]?.split(", ") ?? [];
      const listed = new Set(known.map((name) => name.split(".").at(-1) ?? ""));
      if (names.split(" ").some((name) => !listed.delete(name)) || listed.size > 0)
        wrong.push(`${method}: ${message}`);
    }
    return wrong;
  });
  await pawl.worker({ workflows: [slips] }).start();
  expect(await (await pawl.start(slips)).result()).toEqual([]);
});

test("every method of the context has a place in the table", async () => {
  await using pawl = createPawl({ memory: true });
  const look = workflow({ name: "look", version: 1 }, async (ctx) => Object.keys(ctx));
  await pawl.worker({ workflows: [look] }).start();
  const methods = await (await pawl.start(look)).result();
  const called = new Set(Object.keys(requests).map((label) => /^\w+/.exec(label)?.[0]));
  expect(methods.filter((name) => !called.has(name)).toSorted()).toEqual(["now", "random", "run", "uuid"]);
});

async function refusal(ask: () => unknown): Promise<string> {
  try {
    await ask();
    return "It was accepted.";
  } catch (error) {
    return PawlError.is(error, "INVALID_OPTION") ? error.message : String(error);
  }
}
