import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "pawl-test-support";
import pg from "pg";
import { expect, onTestFinished } from "vitest";
import { withPg } from "../../src/adapters/index.ts";
import { ConnectionLost } from "../../src/core/transact.ts";

/** A message as a server sends it. */
function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(Buffer.byteLength(body, "latin1") + 4);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body, "latin1")]);
}

/** Lets everybody in, and ends the connection in the same breath. */
async function startUnkindServer(): Promise<string> {
  const welcome = Buffer.concat([
    message("R", "\0\0\0\0"),
    message("Z", "I"),
    message("E", "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"),
  ]);
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(welcome));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `postgres://app@127.0.0.1:${(server.address() as AddressInfo).port}/shop`;
}

test("a connection that ends with its first words fails the transaction, and harms nobody", async () => {
  const pool = new pg.Pool({ connectionString: await startUnkindServer() });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on("uncaughtException", note);
  onTestFinished(() => void process.off("uncaughtException", note));
  await expect(withPg(pool).begin(() => Promise.resolve("done"))).rejects.toBeInstanceOf(Error);
  expect(uncaught).toEqual([]);
});

/** Its ROLLBACK is cancelled by whoever looks after the server. */
class HinderedClient extends pg.Client {
  override query(...args: unknown[]): never {
    const hindered = "set local statement_timeout = 1; select pg_sleep(1)";
    const query = super.query.bind(this) as (...given: unknown[]) => never;
    return args[0] === "rollback" ? query(hindered) : query(...args);
  }
}

test("a connection that could not be rolled back is not used again", async ({ database }) => {
  const pool = new pg.Pool({ connectionString: database.url, Client: HinderedClient, max: 1 });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  const refused = new Error("refused");
  await expect(withPg(pool).begin(() => Promise.reject(refused))).rejects.toBe(refused);
  expect(pool.totalCount).toBe(0);
  await expect(withPg(pool).begin(() => Promise.resolve("done"))).resolves.toBe("done");
});

test("a connection that somebody left in a failed transaction is not used again", async ({ database }) => {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  onTestFinished(() => pool.end());
  const left = await pool.connect();
  await left.query("begin");
  await expect(left.query("select 1 / 0")).rejects.toThrow("division by zero");
  left.release();
  await expect(withPg(pool).begin(() => Promise.resolve("done"))).rejects.toBeInstanceOf(ConnectionLost);
  expect(pool.totalCount).toBe(0);
  await expect(withPg(pool).begin(() => Promise.resolve("done"))).resolves.toBe("done");
});
