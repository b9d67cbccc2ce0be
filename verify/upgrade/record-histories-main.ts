// Writes histories/*.json, as the present release stores them: run it once for each release that changes what is stored.
//   npx tsx --conditions=@pawl/source verify/upgrade/record-histories-main.ts
import { mkdir, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ref, type Workflow } from "../../packages/pawl/src/index.ts";
import { Ground } from "../scenes/ground.ts";
import { createRecordedWorkflows } from "./recorded-workflows.ts";
import { historiesFolder, type StoredHistory } from "./stored-histories.ts";

await using ground = await Ground.open();
/** Stacks name it, wherever it is. */
const home = fileURLToPath(new URL("../../", import.meta.url));
const workflows = createRecordedWorkflows(() => {});
await ground.pawl.worker({ workflows }).start();
await mkdir(historiesFolder, { recursive: true });
const { version } = await ground.pawl.migrate();

for (const workflow of workflows.filter(({ name }) => name !== "recorded-child")) {
  const run = await ground.pawl.start(ref<Workflow<undefined>>(workflow.name, workflow.version));
  if (workflow.name === "recorded-waits") {
    await run.signal("word", "early");
    await run.update("ask", 1);
    await pause(200);
    await run.signal("word", "first");
    await run.update("ask", 2);
    await run.signal("end", "last");
  }
  await run.result({ signal: AbortSignal.timeout(20_000) });
  const history: StoredHistory = {
    schema: version,
    run: await ground.value(
      "select to_json(r) from (select r.*, e.output from pawl.run r join pawl.endings e on e.run_id = r.id) r where id = $1",
      [run.id],
    ),
    events: await ground.value(
      "select json_agg(to_json(e) order by seq) from pawl.event e where run_id = $1",
      [run.id],
    ),
  };
  const file = new URL(`${workflow.name}.${version}.json`, historiesFolder);
  const text = JSON.stringify(history, null, 2).replaceAll(home, "/home/pawl/");
  await writeFile(file, `${text}\n`);
}
