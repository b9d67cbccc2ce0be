import type { Duplex } from "node:stream";
import type { EmbeddedPostgresError } from "../embedded-postgres-error.ts";
import {
  onMessage,
  sendMessage,
  type OwnerMessage,
  type RunningServer,
  type SupervisorMessage,
} from "../messages.ts";

/** Bytes of log kept for an owner that does not read, for one halted in a debugger as an example. */
const mostUnread = 1_000_000;
const hangUpMs = 2_000;

/** Everyone who keeps the server alive, each by an open connection. */
export class Owners {
  readonly #gone = new AbortController();
  readonly #staying = new Map<Duplex, { wantsLog: boolean }>();
  /** Those who wait for the end, and are hung up on only then. */
  readonly #waiting = new Set<Duplex>();
  #server: RunningServer | undefined;
  #isClosing = false;

  /** Aborted once the last owner has gone. There is no way back from that. */
  get allGone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Takes on an owner from the first moment. */
  admit(stream: Duplex): void {
    this.#staying.set(stream, { wantsLog: false });
    this.greet(stream);
  }

  /** Listens to someone who becomes an owner by saying hello, and who may only have looked whether we live. */
  greet(stream: Duplex): void {
    stream.on("error", () => undefined);
    stream.once("close", () => this.#remove(stream));
    onMessage<OwnerMessage>(stream, (message) => {
      switch (message.kind) {
        case "hello":
          return this.#welcome(stream, message.wantsLog);
        case "leave":
          return this.#leave(stream);
        default:
          return message satisfies never;
      }
    });
  }

  announce(server: RunningServer): void {
    this.#server = server;
    this.tell({ kind: "ready", server });
  }

  tell(message: SupervisorMessage): void {
    for (const [stream, owner] of this.#staying) {
      if (message.kind === "log" && (!owner.wantsLog || stream.writableLength > mostUnread)) continue;
      sendMessage(stream, message);
    }
  }

  fail(error: EmbeddedPostgresError): void {
    this.tell({ kind: "failed", code: error.code, message: error.message, details: error.details });
    this.#isClosing = true;
  }

  /** From now on sends newcomers away, to look again when we have hung up. */
  close(): void {
    this.tell({ kind: "closing" });
    this.#isClosing = true;
  }

  /** Ends every connection, and waits until what was sent has left, unless its reader is halted. */
  async hangUp(): Promise<void> {
    const streams = [...this.#staying.keys(), ...this.#waiting];
    await Promise.all(streams.map(endStream));
  }

  #welcome(stream: Duplex, wantsLog: boolean): void {
    if (this.#isClosing) {
      this.#waiting.add(stream);
      return sendMessage(stream, { kind: "closing" });
    }
    this.#staying.set(stream, { wantsLog });
    if (this.#server !== undefined) sendMessage(stream, { kind: "ready", server: this.#server });
  }

  #leave(stream: Duplex): void {
    if (this.#staying.size > 1) {
      stream.end();
    } else {
      this.#waiting.add(stream);
    }
    this.#remove(stream);
  }

  #remove(stream: Duplex): void {
    if (this.#staying.delete(stream) && this.#staying.size === 0) {
      this.#isClosing = true;
      this.#gone.abort();
    }
    if (stream.destroyed) this.#waiting.delete(stream);
  }
}

function endStream(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed) return resolve();
    const timer = setTimeout(() => stream.destroy(), hangUpMs);
    stream.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    stream.end(() => stream.destroy());
  });
}
