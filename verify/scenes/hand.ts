import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { WorkerOptions } from "../../packages/pawl/src/index.ts";
import type { Build } from "./workflows.ts";

/** What a worker's process is told. */
export interface HandSettings {
  /** Where Pawl finds its database; may lead through a pooler. */
  readonly url: string;
  /** Where steps write what they did. */
  readonly ledgerUrl: string;
  /** Which release of the workflows' code it has. */
  readonly build: Build;
  /** For the process itself: `--max-old-space-size=64`. */
  readonly nodeOptions: readonly string[];
  readonly worker: Omit<WorkerOptions, "workflows">;
}

export interface HandLine {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
}

/** A worker in a process of its own. */
export class Hand implements AsyncDisposable {
  readonly settings: HandSettings;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #working: Promise<void>;
  readonly lines: HandLine[] = [];
  #errorOutput = "";

  constructor(settings: HandSettings) {
    this.settings = settings;
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const main = fileURLToPath(new URL("hand-main.ts", import.meta.url));
    this.#child = fork(main, [JSON.stringify(settings)], {
      execArgv: [...settings.nodeOptions, "--conditions=@pawl/source", "--import", tsx],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(-2_000);
    });
    this.#exited = once(this.#child, "exit");
    this.#working = new Promise((resolve, reject) => {
      this.#child.on("message", (message: HandLine | "working") => {
        if (message === "working") resolve();
        else this.lines.push(message);
      });
      void this.#exited.then(() =>
        reject(new Error(`A worker ended while it started. ${this.#errorOutput}`)),
      );
    });
    // Who waits for it is told.
    void this.#working.catch(() => {});
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The memory it has; 0 where the system does not tell. */
  async residentMegabytes(): Promise<number> {
    const status = await readFile(`/proc/${this.pid}/status`, "utf8").catch(() => "");
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024);
  }

  /** Resolves when it takes runs. */
  works(): Promise<void> {
    return this.#working;
  }

  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGTERM" | "SIGKILL"): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#exited;
  }

  /** Lets it come to its end. Answers its exit code, null where a signal ended it. */
  async stop(): Promise<number | null> {
    this.signal("SIGTERM");
    return this.exited();
  }

  async exited(): Promise<number | null> {
    await this.#exited;
    return this.#child.exitCode;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill();
  }
}
