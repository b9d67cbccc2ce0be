import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { StartPostgresOptions } from "../src/index.ts";
import { binaries } from "./binaries.ts";
import "./patience.ts";

export interface Started {
  readonly kind: "started";
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  readonly version: string;
}

export interface Failed {
  readonly kind: "failed";
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

type Said = Started | Failed | { readonly kind: "interrupted" | "done" | "ended" };

/** What an owner's process is given besides the options of `startPostgres`. */
export interface OwnerSetting {
  readonly uid?: number;
  readonly gid?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** A program that runs the owner's, with its first arguments. */
  readonly through?: readonly string[];
}

/** Another process that calls `startPostgres`. */
export class Owner implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterableIterator<string>;
  readonly #exited: Promise<unknown>;

  constructor(options: StartPostgresOptions, setting: OwnerSetting = {}) {
    const { through = [], env = {}, ...user } = setting;
    const main = fileURLToPath(new URL("owner-main.ts", import.meta.url));
    const given = JSON.stringify({ ...(binaries === undefined ? {} : { binaries }), ...options });
    const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
    const command = [...through, process.execPath, "--import", tsx, main, given];
    this.process = spawn(command[0]!, command.slice(1), {
      ...user,
      cwd: "/",
      // Its own group, as a shell would start it.
      detached: true,
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#exited = once(this.process, "exit");
    const lines: Interface = createInterface({ input: this.process.stdout! });
    this.#lines = lines[Symbol.asyncIterator]();
  }

  async hear(): Promise<Said> {
    const { value, done } = await this.#lines.next();
    return done === true ? { kind: "ended" } : (JSON.parse(value) as Said);
  }

  async started(): Promise<Started> {
    const said = await this.hear();
    if (said.kind !== "started") throw new Error(`The owner says ${JSON.stringify(said)}`);
    return said;
  }

  async failed(): Promise<Failed> {
    const said = await this.hear();
    if (said.kind !== "failed") throw new Error(`The owner says ${JSON.stringify(said)}`);
    return said;
  }

  async stop(): Promise<void> {
    this.process.stdin!.write("stop\n");
    await this.hear();
  }

  async exit(): Promise<void> {
    this.process.stdin!.write("exit\n");
    await this.#exited;
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.#exited;
  }

  /** What a terminal does on Ctrl-C. */
  interruptGroup(): void {
    process.kill(-this.process.pid!, "SIGINT");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill();
  }
}
