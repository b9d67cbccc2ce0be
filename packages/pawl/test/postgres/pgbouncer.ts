import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";

export interface PgBouncer {
  readonly url: string;
  /** Its console. */
  readonly adminUrl: string;
  /** Ends it without a word, and starts it again at the same place. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Debian's package puts it where ordinary users do not look. */
export const pgbouncer = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"].find(
  (path) => existsSync(path),
);

/** Puts PgBouncer before the database of this URL: each transaction goes to whichever server connection is free. */
export async function startPgBouncer(
  url: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-pgbouncer-"));
  const port = await freePort();
  const { hostname, port: serverPort, username, password, pathname } = new URL(url);
  const server = [
    `host=${hostname}`,
    `port=${serverPort}`,
    `dbname=${pathname.slice(1)}`,
    `user=${username}`,
  ];
  if (password !== "") server.push(`password=${decodeURIComponent(password)}`);
  const config = join(folder, "pgbouncer.ini");
  await writeFile(
    config,
    `[databases]
pooled = ${server.join(" ")}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
admin_users = anyone
pool_mode = transaction
server_login_retry = 1
${Object.entries({ default_pool_size: "4", ...settings })
  .map(([name, value]) => `${name} = ${value}`)
  .join("\n")}
`,
  );
  await chmod(folder, 0o755);
  await chmod(config, 0o644);
  const user = await unprivileged();
  const start = (): ChildProcess => spawn(pgbouncer ?? "pgbouncer", [config], { stdio: "ignore", ...user });
  const end = async (child: ChildProcess): Promise<void> => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  let child = start();
  const pooled = `postgres://anyone@127.0.0.1:${port}/pooled`;
  await waitUntilReachable(pooled);
  return {
    url: pooled,
    adminUrl: `postgres://anyone@127.0.0.1:${port}/pgbouncer`,
    async restart() {
      await end(child);
      child = start();
      await waitUntilReachable(pooled);
    },
    async stop() {
      await end(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** It refuses to run as root. */
async function unprivileged(): Promise<{ readonly uid?: number; readonly gid?: number }> {
  if (process.getuid?.() !== 0) return {};
  const line = (await readFile("/etc/passwd", "utf8")).split("\n").find((user) => user.startsWith("nobody:"));
  const [, , uid, gid] = line?.split(":") ?? [];
  return { uid: Number(uid ?? 65_534), gid: Number(gid ?? 65_534) };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function waitUntilReachable(url: string): Promise<void> {
  for (let left = 100; ; left--) {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
