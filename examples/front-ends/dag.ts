import { createPawl, workflow, type Workflow } from "pawl";

/** A task, and those whose results it needs. */
interface Task {
  readonly needs?: readonly string[];
  readonly run: (...results: readonly string[]) => string | Promise<string>;
}

/** A front end: a workflow whose code is a table of tasks. Each runs as soon as it can. */
function dag(name: string, tasks: Readonly<Record<string, Task>>): Workflow<undefined, string[]> {
  return workflow({ name, version: 1 }, async (ctx) => {
    const results = new Map<string, Promise<string>>();
    const resultOf = (key: string): Promise<string> => {
      const known = results.get(key);
      if (known !== undefined) return known;
      const task = tasks[key];
      if (task === undefined) throw new Error(`There is no task "${key}"`);
      const result = Promise.all((task.needs ?? []).map(resultOf)).then((needed) =>
        ctx.step(key, () => task.run(...needed), { retry: { attempts: 3 } }),
      );
      results.set(key, result);
      return result;
    };
    return Promise.all(Object.keys(tasks).map(resultOf));
  });
}

const breakfast = dag("breakfast", {
  toast: { needs: ["bread", "butter"], run: (bread, butter) => `${bread} with ${butter}` },
  bread: { run: () => "bread" },
  butter: { run: () => "butter" },
  meal: { needs: ["toast", "tea"], run: (...parts) => parts.join(" and ") },
  tea: { run: () => "tea" },
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [breakfast] }).start();
const run = await pawl.start(breakfast);
console.log((await run.result()).join(", "));
const steps = (await run.history()).filter(({ kind }) => kind === "step_completed");
console.log(`${steps.length} steps, the last: ${steps.at(-1)?.name}`);
