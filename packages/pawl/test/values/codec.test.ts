import { describe, expect, test } from "vitest";
import type { PayloadCodec } from "../../src/core/payload-codec.ts";
import { createPayloads } from "../../src/core/payloads.ts";
import { aesGcmCodec, createPawl } from "../../src/index.ts";

const place = { runId: "r", field: "event", name: "charge" } as const;
const key = new Uint8Array(32).fill(7);

describe("aesGcmCodec", () => {
  const codec = aesGcmCodec({ keys: [{ id: "k", key }] });

  test("encrypts the same text differently each time, and gives it back", () => {
    const texts = ["", "ünï 🎉\n\0", "x".repeat(100_000)];
    for (const text of texts) {
      const [a, b] = [codec.encode(text, place), codec.encode(text, place)];
      expect(a).not.toBe(b);
      expect(codec.decode(a, place)).toBe(text);
    }
  });

  test("refuses to decrypt for any other place", () => {
    const stored = codec.encode("secret", place);
    const others = [{ runId: "s" }, { field: "message" as const }, { name: "refund" }, { name: null }];
    for (const other of others) {
      expect(() => codec.decode(stored, { ...place, ...other })).toThrow(
        expect.objectContaining({ code: "CODEC_FAILED" }),
      );
    }
  });

  test("refuses what was changed in any byte, cut off, or under another key's id", () => {
    const stored = codec.encode("secret", place);
    const [id, text] = stored.split(":") as [string, string];
    const bytes = Buffer.from(text, "base64");
    for (let index = 0; index < bytes.length; index++) {
      const changed = Buffer.from(bytes);
      changed[index]! ^= 1;
      expect(() => codec.decode(`${id}:${changed.toString("base64")}`, place)).toThrow("cannot be decrypted");
      expect(() => codec.decode(`${id}:${bytes.subarray(0, index).toString("base64")}`, place)).toThrow(
        "cannot be decrypted",
      );
    }
    const both = aesGcmCodec({
      keys: [
        { id: "k", key },
        { id: "l", key },
      ],
    });
    expect(() => both.decode(`l:${text}`, place)).toThrow("cannot be decrypted");
    expect(() => codec.decode("nonsense", place)).toThrow('its key "nonsense" is not among those given');
  });

  test("has a digest that outlives a rotation, and that the key alone can make", () => {
    const rotated = aesGcmCodec({
      keys: [
        { id: "l", key: new Uint8Array(32) },
        { id: "k", key },
      ],
    });
    expect(rotated.digest("x")).toBe(codec.digest("x"));
    expect(codec.digest("x")).not.toBe(codec.digest("y"));
    expect(aesGcmCodec({ keys: [{ id: "k", key: new Uint8Array(32) }] }).digest("x")).not.toBe(
      codec.digest("x"),
    );
    const moved = aesGcmCodec({ keys: [{ id: "l", key: new Uint8Array(32) }], digestKey: key });
    expect(moved.digest("x")).toBe(codec.digest("x"));
  });

  test.each<[string, unknown, string]>([
    ["no keys", { keys: [] }, "must be a list that is not empty"],
    ["nothing", {}, "must be given"],
    ["a short key", { keys: [{ id: "k", key: "c2hvcnQ=" }] }, "must be 32 bytes"],
    ["a key of another kind", { keys: [{ id: "k", key: 5 }] }, "must be 32 bytes"],
    ["an odd id", { keys: [{ id: "a:b", key }] }, "must be 1 to 64 letters"],
    [
      "twins",
      {
        keys: [
          { id: "k", key },
          { id: "k", key },
        ],
      },
      'two keys with the id "k"',
    ],
    ["a slip of the pen", { key: [] }, 'Did you mean "keys"?'],
    ["a bad digest key", { keys: [{ id: "k", key }], digestKey: "x" }, '"digestKey"'],
  ])("refuses %s", (_name, options, fault) => {
    expect(() => aesGcmCodec(options as never)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining(fault) }),
    );
  });
});

describe("a codec of one's own", () => {
  const shift: PayloadCodec = {
    name: "shift",
    encode: (plain) => [...plain].reverse().join(""),
    decode: (stored) => [...stored].reverse().join(""),
    digest: (plain) => plain,
  };

  test("gets the text of rich values, and gives it back", () => {
    const payloads = createPayloads({ codec: shift });
    const payload = payloads.encode({ at: new Date(0) }, place)!;
    expect(JSON.parse(payload.json)).toEqual({ codec: "shift", data: expect.stringContaining("etaD") });
    expect(payload.notes).toBe('{"codec":"shift"}');
    expect(payloads.decode(payload, place)).toEqual({ at: new Date(0) });
  });

  test("a value that looks like a sealed one is a value", () => {
    const value = { codec: "shift", data: "x" };
    expect(createPayloads().decode(createPayloads().encode(value, place), place)).toEqual(value);
    const payloads = createPayloads({ codec: shift });
    expect(payloads.decode(payloads.encode(value, place), place)).toEqual(value);
  });

  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no key today");
      },
    ],
    ["answers later", async () => "x"],
    ["answers NUL", () => "\0"],
    ["answers half a pair", () => "\ud800"],
  ])("that %s is CODEC_FAILED", (_name, answer) => {
    const payloads = createPayloads({ codec: { ...shift, encode: answer as () => string } });
    expect(() => payloads.encode(1, place)).toThrow(expect.objectContaining({ code: "CODEC_FAILED" }));
    // An error has to be recorded all the same, but not in clear.
    const recorded = payloads.encodeError(new Error("secret"), place);
    expect(JSON.parse(recorded.json)).toMatchObject({ code: "CODEC_FAILED" });
    expect(recorded.json).not.toContain("secret");
  });

  test("is asked for all it must have", () => {
    const partial = { ...shift, digest: undefined };
    expect(() => createPawl({ memory: true, codec: partial as never })).toThrow("encode, decode and digest");
    expect(() => createPawl({ memory: true, codec: { ...shift, name: "" } })).toThrow("must have a name");
    expect(() => createPawl({ memory: true, maxPayloadBytes: 65 * 2 ** 20 })).toThrow(
      "must be from 1 to 67108864",
    );
  });
});
