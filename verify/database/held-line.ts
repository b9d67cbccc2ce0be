import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** A line to the database on which the first message that holds some text waits until it is let go. */
export class HeldLine implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #text: string;
  #hit: (letGo: () => void) => void = () => {};
  /** Resolves with what lets it go. */
  readonly isHeld = new Promise<() => void>((resolve) => (this.#hit = resolve));
  #isUsed = false;

  private constructor(server: Server, target: URL, text: string) {
    this.#server = server;
    this.#text = text;
    const own = new URL(target);
    own.hostname = "127.0.0.1";
    own.port = String((server.address() as AddressInfo).port);
    this.url = own.href;
    server.on("connection", (client) => this.#join(client, connect(Number(target.port), target.hostname)));
  }

  static async listen(url: string, text: string): Promise<HeldLine> {
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new HeldLine(server, new URL(url), text);
  }

  #join(client: Socket, server: Socket): void {
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.on("close", () => [client, server].forEach((each) => each.destroy()));
    }
    server.pipe(client);
    client.on("data", (chunk) => {
      const letGo = (): void => void server.write(chunk);
      if (this.#isUsed || !chunk.includes(this.#text)) letGo();
      else {
        this.#isUsed = true;
        this.#hit(letGo);
      }
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}
