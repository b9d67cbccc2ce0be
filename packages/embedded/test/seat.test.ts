import { once } from "node:events";
import { readdirSync } from "node:fs";
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { beat } from "../src/heartbeat.ts";
import { addressPath, claimSeat, findSeat, holdsSeat, takeSeat, type Address } from "../src/seat.ts";
import { makeFolder } from "./folders.ts";

interface Contender {
  readonly address: Address;
  die(): Promise<void>;
}

async function makeContender(dir: string, name: string, place = "here"): Promise<Contender> {
  const server = createServer((socket) => socket.on("error", () => {}));
  const address = { path: join(dir, name), place };
  await once(server.listen(address.path), "listening");
  onTestFinished(() => void server.close());
  const die = async (): Promise<void> => {
    server.close();
    await once(server, "close");
  };
  return { address, die };
}

async function writeSeat(dir: string, number: number, address: Address): Promise<void> {
  await mkdir(join(dir, `supervisor.${number}`));
  await writeFile(addressPath(dir, { number }), JSON.stringify(address));
}

test("of many who want a seat at once, one gets it", async () => {
  const dir = await makeFolder();
  const names = Array.from({ length: 20 }, (_, index) => `address-${index}`);
  const contenders = await Promise.all(names.map((name) => makeContender(dir, name)));
  const seats = await Promise.all(contenders.map(({ address }) => takeSeat(dir, address)));
  const taken = seats.filter((seat) => seat !== undefined);
  expect(taken).toHaveLength(1);
  expect(await findSeat(dir)).toEqual(taken[0]);
});

test("a seat whose holder does not listen any more goes to the next one", async () => {
  const dir = await makeFolder();
  const first = await makeContender(dir, "first");
  const second = await makeContender(dir, "second");
  const lost = await takeSeat(dir, first.address);
  expect(await takeSeat(dir, second.address)).toBeUndefined();
  await first.die();
  expect((await takeSeat(dir, second.address))?.number).toBe(2);
  expect(await holdsSeat(dir, lost!)).toBe(false);
  expect(readdirSync(dir).filter((name) => name.startsWith("supervisor"))).toEqual(["supervisor.2"]);
});

test("one who was too slow to take the next seat finds that a later one is taken", async () => {
  const dir = await makeFolder();
  const quick = await makeContender(dir, "quick");
  const slow = await makeContender(dir, "slow");
  // It has found seat 5 to be free. By now, 7 is held, and 5 and 6 are removed.
  await writeSeat(dir, 7, quick.address);
  expect(await claimSeat(dir, { number: 6, address: slow.address })).toBe(false);
  expect(readdirSync(dir).filter((name) => name.startsWith("supervisor"))).toEqual(["supervisor.7"]);
});

test("a seat held in another container is refused while its holder shows that it lives", async () => {
  const dir = await makeFolder();
  const { address } = await makeContender(dir, "here");
  await writeSeat(dir, 1, { path: "/not/in/this/container", place: "there" });
  const heart = setInterval(() => void beat(addressPath(dir, { number: 1 })), 50);
  try {
    await expect(takeSeat(dir, address)).rejects.toMatchObject({ code: "DATA_DIR_IN_USE" });
  } finally {
    clearInterval(heart);
  }
  await utimes(addressPath(dir, { number: 1 }), 0, 0);
  expect(await takeSeat(dir, address)).toMatchObject({ number: 2 });
});
