import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { PawlError } from "../core/error.ts";
import { checkList, checkNested, checkOptions, invalidOption, type Check } from "../core/options.ts";
import type { PayloadCodec, PayloadPlace } from "../core/payload-codec.ts";

/** A key of `aesGcmCodec`. */
export interface AesGcmKey {
  /** Stored in clear beside what the key encrypts: 1 to 64 letters, digits, `.`, `_` and `-`. */
  readonly id: string;
  /** 32 bytes, or the base64 of them. */
  readonly key: Uint8Array | string;
}

/** What `aesGcmCodec` takes. */
export interface AesGcmOptions {
  /** The first one encrypts, all of them decrypt. To rotate, put a new one before the others. */
  readonly keys: readonly AesGcmKey[];
  /**
   * Tells whether two inputs under one idempotency key are equal. Must stay the same when keys are rotated. Default: made
   * of the last of `keys`, the oldest.
   */
  readonly digestKey?: Uint8Array | string;
}

const algorithm = "aes-256-gcm";
const keyBytes = 32;
const mostKeys = 1_000;
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Encrypts payloads with AES-256-GCM. Each is bound to its run, its field and its step: moved elsewhere it does not
 * decrypt. Names, keys, statuses and times stay readable.
 * @throws {PawlError} `INVALID_OPTION`
 * @example
 * const codec = aesGcmCodec({ keys: [{ id: "2026-11", key: process.env.PAWL_KEY ?? "" }] });
 * const pawl = createPawl({ url: process.env.DATABASE_URL, codec });
 */
export function aesGcmCodec(options: AesGcmOptions): PayloadCodec {
  const { keys, newest, digestKey } = readOptions(options);

  return {
    name: "aes-gcm",
    encode(plain, place) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv(algorithm, newest.key, nonce).setAAD(bind(newest.id, place));
      const secret = Buffer.concat([cipher.update(plain, "utf8"), cipher.final()]);
      return `${newest.id}:${Buffer.concat([nonce, cipher.getAuthTag(), secret]).toString("base64")}`;
    },
    decode(stored, place) {
      const [id = "", text = ""] = stored.split(":", 2);
      const key = keys.get(id);
      if (key === undefined) throw failed(place, `its key "${id}" is not among those given`, { key: id });
      const bytes = Buffer.from(text, "base64");
      const nonce = bytes.subarray(0, nonceBytes);
      const tag = bytes.subarray(nonceBytes, nonceBytes + tagBytes);
      try {
        const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
          .setAAD(bind(id, place))
          .setAuthTag(tag);
        const secret = bytes.subarray(nonceBytes + tagBytes);
        return Buffer.concat([decipher.update(secret), decipher.final()]).toString("utf8");
      } catch {
        throw failed(place, "the key is another one, or it was changed or moved", { key: id });
      }
    },
    digest: (plain) => createHmac("sha256", digestKey).update(plain).digest("base64"),
  };
}

/** What is authenticated with the secret, without being in it. */
function bind(keyId: string, { runId, field, name }: PayloadPlace): Buffer {
  return Buffer.from(JSON.stringify(["pawl", keyId, runId, field, name]));
}

function failed({ runId, field, name }: PayloadPlace, reason: string, details: object): PawlError {
  const where = name === null ? field : `${field} "${name}"`;
  return new PawlError("CODEC_FAILED", `The ${where} of run ${runId} cannot be decrypted: ${reason}.`, {
    ...details,
    runId,
    field,
    name,
  });
}

function readOptions(given: AesGcmOptions) {
  const options = checkOptions(
    "aesGcmCodec",
    given,
    {
      keys: checkList(checkNested({ id: checkId, key: checkKey }, { required: ["id", "key"] }), mostKeys),
      digestKey: checkKey,
    },
    { required: ["keys"] },
  );
  const keys = new Map<string, Buffer>();
  for (const { id, key } of options.keys) {
    if (keys.has(id)) throw invalidOption("aesGcmCodec", "keys", `hold two keys with the id "${id}"`);
    keys.set(id, readKey(key));
  }
  const [newest] = [...keys].map(([id, key]) => ({ id, key }));
  const oldest = [...keys.values()].at(-1);
  if (newest === undefined || oldest === undefined) throw new PawlError("INTERNAL", "There is no key.");
  const base = options.digestKey === undefined ? oldest : readKey(options.digestKey);
  // A key of its own: what tells equality must not weaken what hides.
  return { keys, newest, digestKey: createHmac("sha256", base).update("pawl digest").digest() };
}

const checkId: Check = (value) =>
  typeof value === "string" && /^[\w.-]{1,64}$/.test(value)
    ? null
    : "must be 1 to 64 letters, digits, '.', '_' and '-'";

const checkKey: Check = (value) => {
  const isKey = typeof value === "string" || value instanceof Uint8Array;
  return isKey && readKey(value).byteLength === keyBytes
    ? null
    : `must be ${keyBytes} bytes, or the base64 of them`;
};

/** A copy: the caller may wipe its own. */
function readKey(key: Uint8Array | string): Buffer {
  return typeof key === "string" ? Buffer.from(key, "base64") : Buffer.from(key);
}
