import { canonicalJson } from "./canonical-json.ts";
import { decode, decodeParsed, defaultPayloadBytes, encode } from "./codec.ts";
import { PawlError } from "./error.ts";
import type { Payload } from "./json.ts";
import { hasLoneSurrogate } from "./name.ts";
import type { PayloadCodec, PayloadPlace } from "./payload-codec.ts";
import { recordError, revive, type RecordedError } from "./recorded-error.ts";

/** Everything a user gives or gets passes through here on its way to and from the store. */
export interface Payloads {
  /** Writes a value down, or refuses it; `seal` must follow. @throws {PawlError} `INVALID_PAYLOAD` */
  write(value: unknown, what?: string): Payload | null;
  /**
   * Makes what was written fit to be stored in its place.
   * @param isCompared adds what tells whether two of them are equal
   * @throws {PawlError} `CODEC_FAILED`
   */
  seal(written: Payload | null, place: PayloadPlace, isCompared?: boolean): Payload | null;
  /** Writes and seals. @throws {PawlError} `INVALID_PAYLOAD`, `CODEC_FAILED` */
  encode(value: unknown, place: PayloadPlace, what?: string): Payload | null;
  /** Writes down whatever was thrown. Never throws itself. */
  encodeError(thrown: unknown, place: PayloadPlace): Payload;
  /** @throws {PawlError} `CODEC_MISSING`, `CODEC_FAILED`, `INVALID_PAYLOAD` */
  decode(payload: Payload | null, place: PayloadPlace): unknown;
  /** The same for JSON that lay in other JSON, and was parsed with it. */
  decodeParsed(value: unknown, notes: unknown, place: PayloadPlace): unknown;
  decodeError(payload: Payload, place: PayloadPlace): Error;
  /** For another place; as it is where no codec has bound it to its own. `isCompared` as for `seal`. */
  move(payload: Payload | null, from: PayloadPlace, to: PayloadPlace, isCompared?: boolean): Payload | null;
}

export interface PayloadsOptions {
  readonly maxBytes?: number | undefined;
  readonly codec?: PayloadCodec | undefined;
}

export function createPayloads({ maxBytes = defaultPayloadBytes, codec }: PayloadsOptions = {}): Payloads {
  const seal: Payloads["seal"] = (written, place, isCompared = false) => {
    if (written === null || codec === undefined) return written;
    const data = callCodec("encode", () => codec.encode(writeText(written), place));
    const digest = isCompared ? callCodec("digest", () => codec.digest(canonicalText(written))) : undefined;
    return {
      json: JSON.stringify({ codec: codec.name, data }),
      notes: JSON.stringify({ codec: codec.name, digest }),
    };
  };

  const open = (value: unknown, name: unknown, place: PayloadPlace): Payload => {
    if (codec === undefined || codec.name !== name) throw missing(name, codec, place);
    const data = typeof value === "object" && value !== null && "data" in value ? value.data : undefined;
    if (typeof data !== "string") throw failed("decode", undefined);
    return readText(callCodec("decode", () => codec.decode(data, place)));
  };

  const write: Payloads["write"] = (value, what) => encode(value, what, maxBytes);

  const decodeSealed: Payloads["decodeParsed"] = (value, notes, place) => {
    if (!isSealed(notes)) return decodeParsed(value, notes);
    const opened = open(value, notes.codec, place);
    try {
      return decode(opened);
    } catch (error) {
      // Not what the parser says: it quotes what was to be kept from others.
      throw PawlError.is(error) ? error : failed("decode", undefined);
    }
  };

  const decodePayload: Payloads["decode"] = (payload, place) => {
    if (payload === null) return undefined;
    const value: unknown = JSON.parse(payload.json);
    return payload.notes === null ? value : decodeSealed(value, JSON.parse(payload.notes), place);
  };

  return {
    write,
    seal,
    encode: (value, place, what) => seal(write(value, what), place),
    encodeError(thrown, place) {
      const recorded = recordError(thrown);
      try {
        return withKind(seal(recorded, place) ?? recorded, recorded);
      } catch {
        // Not the error itself: it was meant to be kept from who can read the store.
        return recordError(failed("encode", undefined));
      }
    },
    decode: decodePayload,
    decodeParsed: decodeSealed,
    decodeError: (payload, place) => revive(decodePayload(payload, place) as RecordedError),
    move(payload, from, to, isCompared) {
      const notes: unknown =
        payload?.notes === undefined || payload.notes === null ? null : JSON.parse(payload.notes);
      if (payload === null || !isSealed(notes)) return payload;
      const there = JSON.parse(payload.json) as object;
      const moved = seal(open(there, notes.codec, from), to, isCompared);
      // What stays readable beside it, such as the kind of an error, goes along.
      return moved && { ...moved, json: JSON.stringify({ ...there, ...(JSON.parse(moved.json) as object) }) };
    },
  };
}

/** Without a codec, and with the usual limit. */
export const plainPayloads: Payloads = createPayloads();

function isSealed(notes: unknown): notes is { readonly codec: unknown } {
  return typeof notes === "object" && notes !== null && "codec" in notes;
}

/** The kind of an error, its name and code, stays readable: lists and alerts ask for it. */
function withKind(sealed: Payload, recorded: Payload): Payload {
  if (sealed === recorded) return recorded;
  const { name, code } = JSON.parse(recorded.json) as RecordedError;
  return {
    json: JSON.stringify({ ...(JSON.parse(sealed.json) as object), name, code }),
    notes: sealed.notes,
  };
}

/** JSON text has no line breaks, so the first one ends it. */
function writeText({ json, notes }: Payload): string {
  return notes === null ? json : `${json}\n${notes}`;
}

function readText(text: string): Payload {
  const end = text.indexOf("\n");
  return end < 0 ? { json: text, notes: null } : { json: text.slice(0, end), notes: text.slice(end + 1) };
}

function canonicalText({ json, notes }: Payload): string {
  return writeText({ json: canonicalJson(json), notes: notes === null ? null : canonicalJson(notes) });
}

type CodecCall = "encode" | "decode" | "digest";

function callCodec(call: CodecCall, act: () => unknown): string {
  let text: unknown;
  try {
    text = act();
  } catch (error) {
    throw PawlError.is(error, "CODEC_FAILED") ? error : failed(call, error);
  }
  if (typeof text === "string" && (call === "decode" || (!text.includes("\0") && !hasLoneSurrogate(text))))
    return text;
  throw failed(call, new TypeError("It must return, at once, a text that Postgres can hold."));
}

/** What the codec threw stays out of the message, which may be stored in clear: it may speak of the payload. */
function failed(call: CodecCall, cause: unknown): PawlError {
  const options = cause === undefined ? undefined : { cause };
  return new PawlError("CODEC_FAILED", `The codec could not ${call} a payload.`, { call }, options);
}

function missing(name: unknown, codec: PayloadCodec | undefined, { runId, field }: PayloadPlace): PawlError {
  const here = codec === undefined ? "has none" : `has "${codec.name}"`;
  const message = `The ${field} of run ${runId} was written with the codec "${String(name)}", and this process ${here}: give it to createPawl.`;
  return new PawlError("CODEC_MISSING", message, { codec: name, runId, field });
}
