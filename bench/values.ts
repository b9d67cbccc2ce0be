import { aesGcmCodec } from "pawl";
import { decode, encode } from "../packages/pawl/src/core/codec.ts";
import { createPayloads } from "../packages/pawl/src/core/payloads.ts";

// What it costs to write a value of 1 kB and to read it back: plain, with one date in it, and encrypted.
//   npx tsx --conditions=@pawl/source bench/values.ts

const rounds = 9;
const repeats = 5_000;
const lines = Array.from({ length: 12 }, (_, n) => ({
  sku: `sku-${n}-abcdef`,
  count: n,
  price: n * 1.25,
  name: "A thing with a name",
}));
const plain = {
  id: 9182,
  email: "someone@example.com",
  tags: ["a", "b", "c"],
  total: 129.5,
  paid: true,
  lines,
};
const rich = { ...plain, at: new Date(0) };
const codec = aesGcmCodec({ keys: [{ id: "k", key: new Uint8Array(32) }] });
const sealed = createPayloads({ codec });
const place = { runId: "run", field: "input", name: null } as const;
const written = { plain: encode(plain), rich: encode(rich), sealed: sealed.encode(plain, place) };

const measured: Readonly<Record<string, () => unknown>> = {
  "JSON.stringify": () => JSON.stringify(plain),
  "write plain": () => encode(plain),
  "write with a date": () => encode(rich),
  "write encrypted": () => sealed.encode(plain, place),
  "JSON.parse": () => JSON.parse(written.plain?.json ?? "") as unknown,
  "read plain": () => decode(written.plain),
  "read with a date": () => decode(written.rich),
  "read encrypted": () => sealed.decode(written.sealed, place),
};

function time(act: () => unknown): number {
  const began = performance.now();
  for (let count = 0; count < repeats; count++) act();
  return ((performance.now() - began) * 1_000) / repeats;
}

// Turn by turn, so that what else the machine does falls on all of them; the fastest round counts.
const best = new Map<string, number>();
for (let round = 0; round < rounds; round++)
  for (const [name, act] of Object.entries(measured))
    best.set(name, Math.min(best.get(name) ?? Infinity, time(act)));
for (const [name, us] of best) console.log(`${name.padEnd(18)} ${us.toFixed(1)} µs`);
