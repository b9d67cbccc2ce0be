import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { WireLink, type Armed, type Fault, type Hit } from "./wire-link.ts";

/** Stands between Pawl and its database, passes everything on, and interferes where it is told to. */
export class WireProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #links = new Set<WireLink>();
  readonly #sqlStates = new Map<string, number>();
  #armed: readonly Armed[] = [];
  #mostLinks = 0;
  #endedHalfOpen = 0;

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

  /** How often the server answered with each error. */
  get sqlStates(): ReadonlyMap<string, number> {
    return this.#sqlStates;
  }

  /** Connections that were open at once, at most. */
  get mostLinks(): number {
    return this.#mostLinks;
  }

  /** Half-open connections that the client has ended by itself, though it had said something that was not answered. */
  get endedHalfOpen(): number {
    return this.#endedHalfOpen;
  }

  /** Those that pass everything on. */
  get links(): readonly WireLink[] {
    return [...this.#links].filter(({ swallowed }) => swallowed === null);
  }

  /** Interferes with the next execution of this statement. Resolves when that has happened. */
  inject(fault: Fault): Promise<Hit> {
    return new Promise((hit) => {
      this.#armed = [...this.#armed, { fault, hit }];
    });
  }

  /** Calls one fault off, if it has not happened. */
  withdraw(fault: Fault): void {
    this.#armed = this.#armed.filter((armed) => armed.fault !== fault);
  }

  /** Interferes no more. Half-open connections stay so until their clients end them. */
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
      failed: (sqlState) => this.#sqlStates.set(sqlState, (this.#sqlStates.get(sqlState) ?? 0) + 1),
      gone: (link) => {
        this.#links.delete(link);
        if ((link.swallowed ?? 0) > 0) this.#endedHalfOpen += 1;
      },
    });
    link.open();
    this.#links.add(link);
    this.#mostLinks = Math.max(this.#mostLinks, this.#links.size);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, "close");
  }
}
