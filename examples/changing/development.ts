import { createPawl, workflow, type Log } from "pawl";

const careless = workflow({ name: "careless", version: 1 }, async (ctx) => {
  const due = new Date(Date.now() + 1_000);
  await ctx.step("remind", () => `by ${due.toISOString()}`);
});

const quiet = (): void => {};
const log: Log = {
  debug: quiet,
  info: quiet,
  error: quiet,
  warn: (message) => console.log(message.replace(/ \(workflow.*/, "")),
};

await using pawl = createPawl({ memory: true, development: true, log });
await pawl.worker({ workflows: [careless] }).start();
await (await pawl.start(careless)).result();
