import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Command, LogLine, ProcessSettings, Report } from "./messages.ts";

const longestErrorOutput = 4_000;

/** A worker in a process of its own. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #logs: LogLine[] = [];
  #errorOutput = "";
  #lastReport: Report["kind"] | "nothing" = "nothing";
  readonly #listeners = new Set<(report: Report) => void>();

  constructor(settings: ProcessSettings) {
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const main = fileURLToPath(new URL("process-main.ts", import.meta.url));
    const execArgv = ["--conditions=@pawl/source", "--import", tsx];
    this.#child = fork(main, [JSON.stringify(settings)], {
      execArgv,
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errorOutput = (this.#errorOutput + text).slice(-longestErrorOutput);
    });
    this.#exited = once(this.#child, "exit");
    this.#child.on("message", (report: Report) => {
      if (report.kind === "log") this.#logs.push(report);
      else this.#lastReport = report.kind;
      for (const listener of this.#listeners) listener(report);
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** What Pawl said to its log, as far as it has arrived. */
  get logs(): readonly LogLine[] {
    return this.#logs;
  }

  /** What became of it, for people. */
  get state(): string {
    const { exitCode, signalCode } = this.#child;
    const life = exitCode ?? signalCode ?? "alive";
    return `${this.pid}: ${life}, last said "${this.#lastReport}" ${this.#errorOutput}`.trimEnd();
  }

  /** The warnings and errors among them that say this. */
  heardOf(words: string): readonly LogLine[] {
    return this.#logs.filter(({ level, message }) => level !== "info" && message.includes(words));
  }

  /** It ended by itself, and not well. */
  get hasCrashed(): boolean {
    return (this.#child.exitCode ?? 0) !== 0;
  }

  onReport(listener: (report: Report) => void): void {
    this.#listeners.add(listener);
  }

  /** The next report of this kind. */
  hear<Kind extends Report["kind"]>(kind: Kind): Promise<Extract<Report, { kind: Kind }>> {
    return new Promise((resolve, reject) => {
      const listener = (report: Report): void => {
        if (report.kind !== kind) return;
        this.#listeners.delete(listener);
        resolve(report as Extract<Report, { kind: Kind }>);
      };
      this.#listeners.add(listener);
      void this.#exited.then(() => reject(new Error(`Process ${this.pid} ended before it said "${kind}".`)));
    });
  }

  /** One that has died hears nothing, which whoever waits for it learns otherwise. */
  tell(command: Command): void {
    this.#child.send(command, () => {});
  }

  /** Resolves when its worker takes runs. */
  async work(): Promise<void> {
    const working = this.hear("working");
    this.tell({ kind: "work" });
    await working;
  }

  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGTERM" | "SIGKILL"): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#exited;
  }

  /** Resolves with its exit code, null if a signal ended it. */
  async exited(): Promise<number | null> {
    await this.#exited;
    return this.#child.exitCode;
  }
}
