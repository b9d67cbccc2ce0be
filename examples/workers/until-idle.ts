import { createPawl } from "pawl";
import { sendReport } from "./reports.ts";

// A cron job: does what there is to do, and ends.
await using pawl = createPawl({ url: process.env.DATABASE_URL, listen: false });
await pawl.migrate();
for (const week of [1, 2, 3]) await pawl.start(sendReport, week, { key: `report:${week}` });

const worker = pawl.worker({ workflows: [sendReport], queues: ["reports"] });
const { isIdle, completed, failed } = await worker.runUntilIdle({ timeout: "10m" });
console.log(`completed ${completed}, failed ${failed}${isIdle ? "" : ", and more is left to do"}`);
