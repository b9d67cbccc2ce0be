import { test } from "pawl-test-support";
import { expect } from "vitest";
import { createPawl, workflow } from "../../src/index.ts";

const greet = workflow({ name: "greet", version: 1 }, async (ctx, name: string) => {
  const word = await ctx.waitForSignal<string>("word");
  return ctx.step("write", () => `${word} ${name}`);
});

const names = [
  "{schema}",
  "{clock}",
  "{channel}",
  String.raw`back\slash`,
  '"; drop schema public; --',
  "x".repeat(63),
  "🎉 \u202e",
  "select",
  " ",
  "$1",
];

test.for(names)("runs live in a schema named %j", async (schema, { pool }) => {
  await using pawl = createPawl({ pool, schema, autoMigrate: true });
  await pawl.worker({ workflows: [greet], stickyRuns: 0 }).start();
  const run = await pawl.start(greet, "Ada", { key: schema });
  await run.signal("word", "Hello");
  expect(await run.result()).toBe("Hello Ada");
  expect((await pawl.list({ key: schema })).runs).toHaveLength(1);
});

test("a name that would end a text or the body of a function is refused", async () => {
  for (const schema of ["$$", "a$$; select 1; $$b", "it's", "'; drop schema public; --"])
    expect(() => createPawl({ url: "postgres://h/x", schema })).toThrow("must not hold ' or $$");
});

test("rights are granted to a role named like a word of ours", async ({ pool, schema }) => {
  await using pawl = createPawl({ pool, schema });
  const role = `{schema} ${schema}`;
  await expect(pawl.migrate({ grantTo: role })).rejects.toMatchObject({ code: "INVALID_OPTION" });
  await pool.query(`create role "${role}"`);
  try {
    await pawl.migrate({ grantTo: role });
    const { rows } = await pool.query("select has_schema_privilege($1, $2, 'usage') as granted", [
      role,
      schema,
    ]);
    expect(rows).toEqual([{ granted: true }]);
  } finally {
    await pool.query(`drop owned by "${role}"`);
    await pool.query(`drop role "${role}"`);
  }
});
