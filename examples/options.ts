import { createPawl, PawlError, workflow } from "pawl";

await using pawl = createPawl({ memory: true });
const job = workflow({ name: "job", version: 1 }, async () => {});

/** Options as they may come from JSON, which no type has checked. */
const options: object = JSON.parse('{ "prioriti": 1, "delay": "soon", "retry": { "attempts": 0 } }');
try {
  await pawl.start(job, undefined, options);
} catch (error) {
  if (!PawlError.is(error, "INVALID_OPTION")) throw error;
  console.log(error.message);
  const problems = error.details.problems as readonly { readonly option: string }[];
  console.log(problems.map(({ option }) => option));
}
