import { createPawl, PawlError, workflow } from "pawl";

/** A page of a report: a run of its own, on whatever worker is free. */
const renderPage = workflow(
  { name: "render-page", version: 1, retry: { attempts: 1 } },
  async (ctx, page: number) => {
    const text = await ctx.step("render", () => `page ${page}`);
    if (page === 13) throw new Error("The printer refuses page 13");
    return text;
  },
);

const archive = workflow({ name: "archive", version: 1 }, async (ctx, text: string) => {
  await ctx.sleep("200ms");
  return ctx.step("store", () => `archived ${text.length} characters`);
});

const printReport = workflow({ name: "print-report", version: 1 }, async (ctx, pages: number) => {
  // One child, awaited.
  const cover = await ctx.call(renderPage, 0);

  // Many children, at most 50 of them at a time. Each item has names of its own.
  const numbers = Array.from({ length: pages }, (_, index) => index + 1);
  const bodies = await ctx.map(
    "pages",
    numbers,
    async (number, item) => {
      const text = await item.call(renderPage, number, { priority: 10 });
      return item.step("check", () => text.length);
    },
    { concurrency: 50 },
  );

  // A child that fails throws its error here.
  const unlucky = await ctx.call(renderPage, 13).catch((error: unknown) => {
    if (!PawlError.is(error, "RUN_FAILED")) throw error;
    return (error.cause as Error).message;
  });

  // Started now, awaited later: the steps in between do not wait for it.
  const archiving = await ctx.start(archive, cover.repeat(pages));
  const checked = await ctx.step("count", () => bodies.length);
  return { cover, checked, unlucky, archived: await archiving.result() };
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [printReport, renderPage, archive] }).start();

const run = await pawl.start(printReport, 12);
console.log(await run.result());
