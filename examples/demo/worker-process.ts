import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Report } from "./workflows.ts";

/** A worker in a process of its own, as in production. */
export interface WorkerProcess {
  readonly name: string;
  readonly pid: number;
  kill(): void;
  stop(): Promise<void>;
}

export async function startWorker(
  name: string,
  url: string,
  onReport: (worker: string, report: Report) => void,
): Promise<WorkerProcess> {
  const child = fork(fileURLToPath(new URL("worker.ts", import.meta.url)), {
    env: { ...process.env, DATABASE_URL: url },
    execArgv: process.execArgv,
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await firstMessage(child, name);
  child.on("message", (report: Report) => onReport(name, report));
  return {
    name,
    pid: child.pid ?? 0,
    kill: () => child.kill("SIGKILL"),
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}

function firstMessage(child: ChildProcess, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("message", () => resolve());
    child.once("exit", (code) => reject(new Error(`Worker ${name} ended with ${code} before it was up.`)));
  });
}
