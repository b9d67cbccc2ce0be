import { createPawl, NonRetryableError, workflow } from "pawl";

const resize = workflow({ name: "resize", version: 1 }, async (ctx, file: string) =>
  ctx.step("resize", () => {
    if (!file.endsWith(".png")) throw new NonRetryableError(`${file} is no image`);
    return `small-${file}`;
  }),
);

/** Each child is a run of its own: it has its own retries, and any worker may execute it. */
const album = workflow({ name: "album", version: 1 }, async (ctx, files: readonly string[]) => {
  const ends = await Promise.allSettled(files.map((file) => ctx.call(resize, file)));
  const made = ends.filter((end) => end.status === "fulfilled").map((end) => end.value);
  return { made, failed: ends.length - made.length };
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [album, resize] }).start();

const run = await pawl.start(album, ["a.png", "b.txt", "c.png"]);
console.log(await run.result());
