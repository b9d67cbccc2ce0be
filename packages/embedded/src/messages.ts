import type { Duplex } from "node:stream";
import type { EmbeddedPostgresErrorCode } from "./embedded-postgres-error.ts";

/** What an owner says to the supervisor. Being connected, after hello, is what makes it an owner. */
export type OwnerMessage =
  | { readonly kind: "hello"; readonly wantsLog: boolean }
  /** Closes the connection in return, once the server has ended if this was the last owner. */
  | { readonly kind: "leave" };

/** What the supervisor says to an owner. */
export type SupervisorMessage =
  | { readonly kind: "ready"; readonly server: RunningServer }
  | { readonly kind: "log"; readonly line: string }
  /** This supervisor does not serve the folder, or is about to end: look again once it has hung up. */
  | { readonly kind: "closing" }
  | {
      readonly kind: "failed";
      readonly code: EmbeddedPostgresErrorCode;
      readonly message: string;
      readonly details: Readonly<Record<string, unknown>>;
    };

/** A server that accepts connections. */
export interface RunningServer {
  readonly pid: number;
  readonly port: number;
  readonly password: string;
  readonly version: string;
}

/** Sends one message as one line. A peer that has gone is noticed by its connection's end, not here. */
export function sendMessage(stream: Duplex, message: OwnerMessage | SupervisorMessage): void {
  if (stream.writable) stream.write(`${JSON.stringify(message)}\n`);
}

/** Calls `receive` with each message that arrives. Both ends are ours, of one version: no checking. */
export function onMessage<Message>(stream: Duplex, receive: (message: Message) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) receive(JSON.parse(line) as Message);
  });
}
