import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import { createPawl, PawlError, type Pawl, type PawlOptions } from "../../src/index.ts";
import { badCalls, type BadCall } from "./calls.ts";
import { entries, idle, optionsOf, withoutArguments, type Ground } from "./entries.ts";
import { outcomeOf } from "./outcome.ts";
import { watchProcess } from "./watch-process.ts";

watchProcess();

async function prepare(pawl: Pawl): Promise<Ground> {
  const ended = await pawl.start(idle, 1);
  await ended.cancel();
  return { pawl, ended, live: await pawl.start(idle, 2, { queue: "nobody" }) };
}

async function tryAll(pawl: Pawl, calls: readonly BadCall[]): Promise<ReadonlyMap<string, number>> {
  const ground = await prepare(pawl);
  const tally = new Map<string, number>();
  const wrong: string[] = [];
  for (const { label, call } of calls) {
    const outcome = await outcomeOf(() => call(ground));
    tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
    if (outcome !== "accepted" && outcome !== "refused") wrong.push(`${label}: ${outcome}`);
  }
  expect(wrong).toEqual([]);
  return tally;
}

/** All that was acknowledged can be listed, read and ended. */
async function expectWhole(pawl: Pawl): Promise<void> {
  for await (const run of pawl.listAll({ limit: 1_000 })) {
    expect((await pawl.handle(run.id).history()).length).toBeGreaterThanOrEqual(0);
    for (const date of [run.createdAt, run.startAt, run.dueAt, run.expiresAt, run.deadlineAt, run.endedAt])
      expect(date === null || Number.isFinite(date.getTime()), `a date of run ${run.id}`).toBe(true);
    await pawl.cancel(run.id);
  }
  const run = await pawl.start(idle, "still works");
  await pawl.worker({ workflows: [idle] }).start();
  expect(await run.result()).toBe("still works");
  expect((await pawl.list({ status: "blocked" })).runs).toEqual([]);
}

const places: readonly (readonly [string, (place: PawlOptions) => PawlOptions])[] = [
  ["memory", () => ({ memory: true })],
  ["Postgres", (place) => ({ ...place, autoMigrate: true })],
];

describe.each(places)("with %s", (_name, optionsIn) => {
  test(
    "no junk given to any entry does harm: it is refused with a code, or is right there",
    { timeout: 120_000 },
    async ({ pool, schema }) => {
      await using pawl = createPawl(optionsIn({ pool, schema }));
      const tally = await tryAll(pawl, badCalls);
      expect(badCalls.length).toBeGreaterThan(20_000);
      expect(tally.get("refused")).toBeGreaterThan(badCalls.length * 0.7);
      await expectWhole(pawl);
    },
  );

  test("an option that is misspelt is refused, and the right one is named", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const ground = await prepare(pawl);
    for (const [entry, { names, call, takesMore }] of Object.entries(optionsOf)) {
      if (takesMore) continue;
      for (const name of names.split(" ")) {
        const slip = name + (name.at(-1) ?? "");
        const error = await refusalOf(() => call(ground, { [slip]: 1 }));
        expect([entry, error.code, error.message]).toEqual([
          entry,
          "INVALID_OPTION",
          expect.stringContaining(`Did you mean "`),
        ]);
        expect([entry, slip, error.message]).toEqual([entry, slip, expect.stringContaining(`${name}"?`)]);
      }
    }
  });

  test("every option there is has a place in the table", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const ground = await prepare(pawl);
    for (const [entry, { names, call, takesMore }] of Object.entries(optionsOf)) {
      if (takesMore) continue;
      const { message } = await refusalOf(() => call(ground, { "neither this nor that option": 1 }));
      const known = /Known are (.+?)\.(?:\n|$)/.exec(message)?.[1]?.split(", ") ?? [];
      const listed = known.map((name) => name.split(".").at(-1) ?? "").toSorted();
      expect([entry, ...listed]).toEqual([entry, ...names.split(" ").toSorted()]);
    }
  });

  test("every method there is has a place in the table", async ({ pool, schema }) => {
    await using pawl = createPawl(optionsIn({ pool, schema }));
    const { live } = await prepare(pawl);
    const called = new Set(Object.keys(entries).map((label) => /^(?:run\.)?(\w+)/.exec(label)?.[1]));
    const methods = [...Object.keys(pawl), ...Object.keys(live)].filter(
      (name) =>
        !withoutArguments.includes(name) && !["id", "status", "attempts", "nodes", "history"].includes(name),
    );
    expect(methods.filter((name) => !called.has(name))).toEqual([]);
  });
});

async function refusalOf(act: () => unknown): Promise<PawlError> {
  try {
    await act();
  } catch (error) {
    if (error instanceof PawlError) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

test("a url that cannot be understood is refused, and one that is odd is not", async () => {
  for (const url of ["postgres://[", "postgres://h:99999999/x", "localhost", "mysql://localhost/x"])
    expect([url, await outcomeOf(() => createPawl({ url }))]).toEqual([url, "refused"]);
  const odd = [
    "postgres://",
    "postgres:///x",
    "postgresql://ada:a%zz b@my host/x",
    "postgres://ada@/x?host=/tmp",
  ];
  for (const url of odd)
    expect([url, await outcomeOf(() => createPawl({ url }).close())]).toEqual([url, "accepted"]);
});
