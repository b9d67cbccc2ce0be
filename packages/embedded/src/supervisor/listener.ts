import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, utimes } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where owners find the supervisor. */
export interface Listener {
  readonly path: string;
  close(): Promise<void>;
}

/** The shortest limit on a socket's path among the systems we run on is 103 bytes, on macOS. */
const longestTemporaryFolder = 80;
const touchEveryMs = 3_600_000;

/**
 * Listens where only this user can connect. Not in the data folder, whose path may be too long
 * for a socket and whose file system may have none.
 */
export async function listenForOwners(receive: (stream: Socket) => void): Promise<Listener> {
  const server = createServer(receive);
  if (process.platform === "win32") {
    const path = `\\\\.\\pipe\\pawl-postgres-${randomBytes(16).toString("hex")}`;
    await once(server.listen(path), "listening");
    return { path, close: async () => void server.close() };
  }
  const parent = Buffer.byteLength(tmpdir()) > longestTemporaryFolder ? "/tmp" : tmpdir();
  const dir = await mkdtemp(join(parent, "pawl-"));
  const path = join(dir, "owners");
  await once(server.listen(path), "listening");
  // Cleaners of temporary folders remove what has not been touched for days.
  const touch = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, touchEveryMs);
  return {
    path,
    async close() {
      clearInterval(touch);
      server.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
