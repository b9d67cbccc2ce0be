// A process that owns a server until it is told to stop, or killed.
import { createInterface } from "node:readline";
import { startPostgres, type StartPostgresOptions } from "../src/index.ts";

const say = (message: unknown): boolean => process.stdout.write(`${JSON.stringify(message)}\n`);

// As a program that drains on Ctrl-C does: it still needs its database for a while.
process.on("SIGINT", () => say({ kind: "interrupted" }));

try {
  const postgres = await startPostgres(JSON.parse(process.argv[2] ?? "{}") as StartPostgresOptions);
  const { url, port, dir, version } = postgres;
  say({ kind: "started", url, port, dir, version });
  for await (const command of createInterface({ input: process.stdin })) {
    if (command === "stop") await postgres.stop();
    if (command === "exit") process.exit(0);
    say({ kind: "done" });
  }
} catch (error) {
  const { code, message, details } = error as Record<string, unknown>;
  say({ kind: "failed", code, message, details });
}
