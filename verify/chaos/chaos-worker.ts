import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Command, Report, WorkerSettings } from "./messages.ts";

const longestErrorOutput = 4_000;

/** A worker in a process of its own, which can be killed and stopped. */
export class ChaosWorker {
  readonly settings: WorkerSettings;
  readonly #child: ChildProcess;
  readonly exited: Promise<unknown>;
  #errorOutput = "";
  #isDoomed = false;

  constructor(path: string, settings: WorkerSettings, hear: (report: Report, worker: ChaosWorker) => void) {
    this.settings = settings;
    this.#child = fork(path, [JSON.stringify(settings)], {
      execArgv: [],
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(-longestErrorOutput);
    });
    this.exited = once(this.#child, "exit");
    // Whoever is killed can no longer be told anything.
    this.#child.on("error", () => {});
    this.#child.on("message", (report: Report) => hear(report, this));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** It ended, and nobody wanted it to. */
  get hasCrashed(): boolean {
    return !this.isAlive && !this.#isDoomed;
  }

  get errorOutput(): string {
    return this.#errorOutput;
  }

  tell(command: Command): void {
    if (this.#child.connected) this.#child.send(command, () => {});
  }

  /** Resolves when it has said this; rejects when it ends before. */
  hears(kind: Report["kind"]): Promise<void> {
    return new Promise((resolve, reject) => {
      const listen = (report: Report): void => {
        if (report.kind !== kind) return;
        this.#child.off("message", listen);
        resolve();
      };
      this.#child.on("message", listen);
      void this.exited.then(() => reject(new Error(`Process ${this.pid} ended before it said "${kind}".`)));
    });
  }

  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async kill(): Promise<void> {
    this.#isDoomed = true;
    this.#child.kill("SIGKILL");
    await this.exited;
  }

  /** Lets it stop in order. */
  async leave(): Promise<void> {
    this.#isDoomed = true;
    this.tell({ kind: "leave" });
    await this.exited;
  }
}
