// One share of the simulation, in a process of its own: its seeds begin like the first argument, and the second says for how many seconds.

import { runBatch } from "./batch.ts";

const [prefix, seconds] = process.argv.slice(2);
// Made for every failed call and read by nobody; whoever repeats the schedule sees them.
Error.stackTraceLimit = 0;
const report = await runBatch((index) => `${prefix}.${index}`, Number(seconds));
process.send?.(report);
process.disconnect();
