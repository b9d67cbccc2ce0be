import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { rename } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Folder } from "../folder.ts";

const tailLines = 40;

/** The server's log: to a file, to whoever listens, and its end kept for an error message. */
export class ServerLog {
  readonly #file: WriteStream;
  readonly #tell: (line: string) => void;
  #tail: string[] = [];

  private constructor(file: WriteStream, tell: (line: string) => void) {
    this.#file = file;
    this.#tell = tell;
    // A full disk must not end the server's supervisor.
    file.on("error", () => undefined);
  }

  /** Begins a new file and keeps the last one, so that the log of a crash outlives one restart. */
  static async open(folder: Folder, tell: (line: string) => void): Promise<ServerLog> {
    await rename(folder.log, folder.previousLog).catch(() => undefined);
    return new ServerLog(createWriteStream(folder.log, { flags: "a", mode: 0o600 }), tell);
  }

  /** Takes every line that the stream will bring. */
  follow(stream: Readable): void {
    createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on("line", (line) => {
      this.#file.write(`${line}\n`);
      this.#tail = [...this.#tail.slice(1 - tailLines), line];
      this.#tell(line);
    });
  }

  /** The tail begins anew: another server writes from now on. */
  forget(): void {
    this.#tail = [];
  }

  tail(): string {
    return this.#tail.join("\n");
  }

  async close(): Promise<void> {
    if (this.#file.destroyed) return;
    this.#file.end();
    await once(this.#file, "close").catch(() => undefined);
  }
}
