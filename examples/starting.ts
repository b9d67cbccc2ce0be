import { createPawl, PawlError, ref, workflow } from "pawl";

const order: string[] = [];
const print = workflow({ name: "print", version: 1, queue: "printer" }, async (ctx, page: string) => {
  await ctx.step("print", () => void order.push(page));
  return page.length;
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();

// Twice the same key is one run. Another input under it is an error, and so is any second start with "reject".
const one = await pawl.start(print, "cover", { key: "print:cover" });
const same = await pawl.start(print, "cover", { key: "print:cover" });
console.log(one.id === same.id);
for (const attempt of [
  () => pawl.start(print, "another cover", { key: "print:cover" }),
  () => pawl.start(print, "cover", { key: "print:cover", onConflict: "reject" }),
])
  await attempt().catch((error: unknown) => {
    if (!PawlError.is(error, "KEY_CONFLICT")) throw error;
    console.log(error.code, error.details.runId === one.id);
  });

// Many at once. What is said of all holds for each that says nothing else.
const pages = ["page 1", "page 2", "page 3"];
await pawl.startMany(
  print,
  pages.map((page) => ({ input: page, key: `print:${page}` })),
  { tags: ["book"], priority: 10 },
);
await pawl.startMany(print, [{ input: "urgent", priority: -1 }, { input: "page 0" }], { priority: 10 });

// Later, but never too late; and one that shall try only once.
const late = await pawl.start(print, "late", { delay: "1h", expiresIn: "2h", timeout: "3h" });
await pawl.start(print, "once", { priority: 99, retry: { attempts: 1 } });

// A service that has no code of it starts it by name. The queue must be said: only the code knows it.
await pawl.start(ref<typeof print>("print", 1, { queue: "printer" }), "by name", { priority: 100 });

// After all, now.
await late.reschedule({ delay: 0, priority: 101 });

await pawl.worker({ workflows: [print], queues: ["printer"], concurrency: 1 }).runUntilIdle();
console.log(order.join(", "));
const { runs } = await pawl.list({ tags: ["book"] });
console.log(runs.map((run) => `${run.key} ${run.status}`).join(", "));
