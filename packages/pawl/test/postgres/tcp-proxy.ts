import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface TcpProxy {
  /** The server's URL, through this proxy. */
  readonly url: string;
  /** Connections that clients have open. */
  openCount(): number;
  /** Lets nothing through on the connections that are open, and tells neither end: a cable that was pulled. */
  stall(): void;
  /**
   * Keeps back the end of the next connection's handshake until the server has closed the connection, and passes all on
   * together. Resolves when it keeps something back.
   */
  holdHandshake(): Promise<void>;
  close(): Promise<void>;
}

/** Ready for the first query: the handshake is over. */
const ready = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** Stands between a client and the server of this URL. */
export async function createTcpProxy(url: string): Promise<TcpProxy> {
  const { hostname: host, port } = new URL(url);
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  let onHeld: (() => void) | null = null;
  const passBack = (upstream: Socket, client: Socket): void => {
    const held: Buffer[] = [];
    upstream.on("data", (chunk) => {
      const isHeld = held.length > 0 || (onHeld !== null && chunk.includes(ready));
      if (isHeld) held.push(chunk);
      else client.write(chunk);
      if (!isHeld) return;
      onHeld?.();
      onHeld = null;
    });
    upstream.on("end", () => client.end(Buffer.concat(held)));
  };
  const server = createServer((client) => {
    const upstream = connect({ host, port: Number(port) });
    clients.add(client);
    upstreams.add(upstream);
    client.on("close", () => clients.delete(client));
    upstream.on("close", () => upstreams.delete(upstream));
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.pipe(upstream);
    if (onHeld === null) upstream.pipe(client);
    else passBack(upstream, client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const through = new URL(url);
  through.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url: through.href,
    openCount: () => clients.size,
    stall() {
      for (const socket of [...clients, ...upstreams]) {
        socket.unpipe();
        // Reads, so that it notices when its own end is closed, but passes nothing on.
        socket.resume();
      }
    },
    holdHandshake: () =>
      new Promise((resolve) => {
        onHeld = resolve;
      }),
    async close() {
      for (const socket of [...clients, ...upstreams]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
