import { once } from "node:events";
import { createServer } from "node:net";

/** A port that is free now: the preferred one if it is, and if it is not zero. */
export async function findFreePort(preferred: number): Promise<number> {
  return (await tryPort(preferred)) ?? (await tryPort(0)) ?? 0;
}

/** The port, if it can be had, or any if it is zero. */
export async function tryPort(port: number): Promise<number | undefined> {
  const server = createServer();
  try {
    await once(server.listen({ port, host: "127.0.0.1", exclusive: true }), "listening");
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : undefined;
  } catch {
    return undefined;
  } finally {
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  }
}
