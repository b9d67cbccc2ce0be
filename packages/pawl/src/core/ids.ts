import type { Random } from "./random.ts";

/** A run's identity: a uuid v7 in lower case. Sorts by age. */
export type RunId = string;

/** Makes ids for runs and messages. */
export interface Ids {
  next(): RunId;
}

const subMsSteps = 4096;

/**
 * Makes uuid v7s that grow strictly in one process: 48 bits of ms, 12 bits that count within the ms, 10 bits of
 * shard, 52 random bits. `now` should follow the database's clock, so that ids of all processes sort by age.
 */
export function createIds(now: () => number, random: Random, shard = 0): Ids {
  let lastMs = 0;
  let step = 0;
  let time = writeTime(lastMs);
  const setTime = (ms: number): void => {
    lastMs = ms;
    time = writeTime(ms);
  };
  const variantAndShard = (0x800 | shard).toString(16);
  return {
    next() {
      const ms = Math.floor(now());
      if (ms > lastMs) {
        setTime(ms);
        step = Math.floor(random.next() * (subMsSteps / 4));
      } else if (++step === subMsSteps) {
        setTime(lastMs + 1);
        step = 0;
      }
      const digit = hex1[Math.floor(random.next() * 16)];
      const tail = Math.floor(random.next() * 2 ** 48);
      const [high, low] = [Math.floor(tail / 2 ** 24), tail % 2 ** 24];
      return `${time}-7${hex3[step]}-${variantAndShard}${digit}-${hex3[high >> 12]}${hex3[high & 0xfff]}${hex3[low >> 12]}${hex3[low & 0xfff]}`;
    },
  };
}

/** Looked up: Node takes half a microsecond to write a number of 48 bits so, which is as much as all else about an id. */
const hex3 = Array.from({ length: 0x1000 }, (_, number) => number.toString(16).padStart(3, "0"));
const hex1 = Array.from({ length: 0x10 }, (_, number) => number.toString(16));

function writeTime(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}`;
}

/** The shard whose tables hold this run. */
export function shardOf(id: RunId): number {
  return (Number.parseInt(id.slice(19, 23), 16) >> 4) & 0x3ff;
}

/** When this id was made, by the clock of who made it. */
export function msOf(id: RunId): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** A bound that is smaller than every id made at this instant or later, and larger than all before. */
export function idsFrom(ms: number): RunId {
  return `${writeTime(Math.min(Math.max(0, Math.floor(ms)), 2 ** 48 - 1))}-0000-0000-000000000000`;
}

const runIdForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isRunId(value: unknown): boolean {
  return typeof value === "string" && runIdForm.test(value);
}
