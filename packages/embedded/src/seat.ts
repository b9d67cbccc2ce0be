import { mkdtemp, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { isBeating } from "./heartbeat.ts";
import { hasSystemCode } from "./system-code.ts";

// Whoever holds the newest seat supervises the folder. Seats are numbered folders that tell where
// their holder listens; a holder that does not answer there is dead, and the next number is free to
// take. A seat's folder gets its name by a rename that fails if the name is taken, so only one of
// many can take it, and it is never seen without its address. A seat is removed only by the holder
// of a later one: a slow contender that takes an old number finds the later one afterwards.

const seatName = /^supervisor\.(\d+)$/;
const addressFile = "address";

/** Where a supervisor can be called. */
export interface Address {
  /** A socket's path, or a named pipe. */
  readonly path: string;
  /** The machine, or the part of it that sees the same processes and the same network. */
  readonly place: string;
}

/** The right to look after a folder. */
export interface Seat {
  readonly number: number;
  readonly address: Address;
}

/** The newest seat, whose holder may be dead. */
export async function findSeat(dir: string): Promise<Seat | undefined> {
  for (;;) {
    const number = Math.max(0, ...(await listSeats(dir)));
    if (number === 0) return undefined;
    try {
      const text = await readFile(addressPath(dir, { number }), "utf8");
      return { number, address: JSON.parse(text) as Address };
    } catch (error) {
      // Removed in between by the holder of a later seat: look again.
      if (!hasSystemCode(error, "ENOENT")) throw error;
    }
  }
}

/**
 * Takes the folder's next seat for someone who already listens at `address`. Undefined: another has it.
 * @throws {EmbeddedPostgresError} `DATA_DIR_IN_USE` if the other is in another place
 */
export async function takeSeat(dir: string, address: Address): Promise<Seat | undefined> {
  const newest = await findSeat(dir);
  if (newest !== undefined && (await isHeld(dir, newest, address.place))) return undefined;
  const seat = { number: (newest?.number ?? 0) + 1, address };
  if (!(await claimSeat(dir, seat))) return undefined;
  if (newest?.address.place === address.place) await removeSocket(newest.address.path);
  return seat;
}

/** Takes this very seat, and removes earlier ones. False: someone else took it, or a later one. */
export async function claimSeat(dir: string, seat: Seat): Promise<boolean> {
  if (!(await publishSeat(dir, seat))) return false;
  if (!(await holdsSeat(dir, seat))) {
    await rm(seatPath(dir, seat.number), { recursive: true, force: true });
    return false;
  }
  for (const number of await listSeats(dir)) {
    if (number < seat.number) await rm(seatPath(dir, number), { recursive: true, force: true });
  }
  return true;
}

/** Whether no later seat has been taken. */
export async function holdsSeat(dir: string, seat: Seat): Promise<boolean> {
  return Math.max(0, ...(await listSeats(dir))) <= seat.number;
}

/** The file on which the holder shows that it lives. */
export function addressPath(dir: string, seat: Pick<Seat, "number">): string {
  return join(seatPath(dir, seat.number), addressFile);
}

/** Connects to the seat's holder, who must be in the same place. Undefined: it is dead. */
export function callHolder(seat: Seat): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(seat.address.path);
    socket.once("connect", () => {
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", (error) => {
      if (hasSystemCode(error, "ECONNREFUSED", "ENOENT", "ENOTSOCK")) resolve(undefined);
      else reject(error);
    });
  });
}

async function isHeld(dir: string, seat: Seat, place: string): Promise<boolean> {
  if (seat.address.place === place) {
    const holder = await callHolder(seat);
    holder?.destroy();
    return holder !== undefined;
  }
  if (!(await isBeating(addressPath(dir, seat)))) return false;
  throw new EmbeddedPostgresError(
    "DATA_DIR_IN_USE",
    `Postgres runs in ${dir} in another container or on another machine; end it there, or choose another folder.`,
    { dir },
  );
}

/** A holder that was killed has left its socket, in a folder made for it. */
async function removeSocket(path: string): Promise<void> {
  if (process.platform === "win32") return;
  await rm(path, { force: true });
  await rmdir(dirname(path)).catch(() => undefined);
}

async function publishSeat(dir: string, seat: Seat): Promise<boolean> {
  const draft = await mkdtemp(join(dir, "supervisor.draft-"));
  try {
    await writeFile(join(draft, addressFile), JSON.stringify(seat.address));
    await rename(draft, seatPath(dir, seat.number));
    return true;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (hasSystemCode(error, "ENOTEMPTY", "EEXIST", "EPERM")) return false;
    throw error;
  }
}

async function listSeats(dir: string): Promise<readonly number[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    if (hasSystemCode(error, "ENOENT")) return [];
    throw error;
  });
  return names.flatMap((name) => {
    const match = seatName.exec(name);
    return match === null ? [] : [Number(match[1])];
  });
}

function seatPath(dir: string, number: number): string {
  return join(dir, `supervisor.${number}`);
}
