import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { withPg } from "../../src/adapters/index.ts";

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
