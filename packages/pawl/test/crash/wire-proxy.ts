import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { WireLink, type Armed, type Fault, type Hit } from "./wire-link.ts";

/** Stands between Pawl and its database, passes everything on, and interferes where it is told to. */
export class WireProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #armed: readonly Armed[] = [];

  private constructor(server: Server, target: URL) {
    this.#server = server;
    const own = new URL(target);
    own.hostname = "127.0.0.1";
    own.port = String((server.address() as AddressInfo).port);
    this.url = own.href;
    server.on("connection", (client) => this.#join(client, connect(Number(target.port), target.hostname)));
  }

  static async listen(url: string): Promise<WireProxy> {
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new WireProxy(server, new URL(url));
  }

  /** Interferes with the next execution of this statement. Resolves when that has happened. */
  inject(fault: Fault): Promise<Hit> {
    return new Promise((hit) => {
      this.#armed = [...this.#armed, { fault, hit }];
    });
  }

  /** Interferes no more. */
  disarm(): void {
    this.#armed = [];
  }

  /** Cuts every connection there is. New ones are let in. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #find(at: "request" | "answer", statement: string): readonly Armed[] {
    return this.#armed.filter(({ fault }) => {
      const befallsRequest = fault.kind === "cut" || fault.kind === "delay";
      return befallsRequest === (at === "request") && statement.endsWith(fault.statement);
    });
  }

  #take(armed: Armed | undefined): Armed | null {
    this.#armed = this.#armed.filter((other) => other !== armed);
    return armed ?? null;
  }

  #join(client: Socket, server: Socket): void {
    server.setNoDelay(true);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    }
    const link = new WireLink(client, server, {
      request: (statement) => this.#take(this.#find("request", statement)[0]),
      awaitsAnswer: (statement) => this.#find("answer", statement).length > 0,
      answer: (statement, rows) =>
        this.#take(this.#find("answer", statement).find(({ fault }) => fault.isWorth?.(rows) ?? true)),
    });
    link.open();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, "close");
  }
}
