import { createPawl, workflow } from "pawl";

let hasFailed = false;
const report = workflow({ name: "report", version: 1, retry: { initial: 0 } }, async (ctx, month: string) => {
  const rows = await ctx.step("count", () => month.length);
  await ctx.step("send", () => {
    if (hasFailed) return;
    hasFailed = true;
    throw Object.assign(new Error("No answer"), { code: "ETIMEDOUT" });
  });
  return { rows };
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.startMany(
  report,
  ["May", "June", "July"].map((month) => ({ input: month, key: `report:${month}`, tags: ["2026", month] })),
);

// Nobody has taken them yet.
for (const { queue, workflow: name, version, count } of await pawl.backlog())
  console.log(`${count} of ${name}@${version} wait in ${queue}`);

await pawl.worker({ workflows: [report], concurrency: 1 }).runUntilIdle({ linger: "1s" });
const { completed, pending } = await pawl.counts();
console.log(`completed ${completed.count}, pending ${pending.count}`);

const [may] = (await pawl.list({ key: "report:May" })).runs;
if (may === undefined) throw new Error("There is no run with this key.");
console.log(may.status, may.tags, may.output);
for (const { attempt, outcome, errorCode } of await pawl.handle(may.id).attempts())
  console.log(`attempt ${attempt}: ${outcome} ${errorCode ?? ""}`.trim());
for (const { seq, kind, name } of await pawl.handle(may.id).history())
  console.log(`${seq} ${kind} ${name ?? ""}`.trim());

// Page after page; a `break` stops it.
let seen = 0;
for await (const run of pawl.listAll({ tags: ["2026"], limit: 2 }))
  seen += run.status === "completed" ? 1 : 0;
console.log(`seen ${seen}`);
