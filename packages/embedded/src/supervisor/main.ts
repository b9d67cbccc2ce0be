import { Socket } from "node:net";
import type { SupervisorConfig } from "../supervisor-config.ts";
import { supervise } from "./supervise.ts";

const config = JSON.parse(process.argv[2] ?? "null") as SupervisorConfig;

// A service manager or a shell may signal every process it knows of. This one ends with its
// owners, who may need the database to the last.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

await supervise(config, new Socket({ fd: 3, readable: true, writable: true }));
process.exit(0);
