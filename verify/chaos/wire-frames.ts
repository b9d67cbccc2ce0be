/** A message of Postgres' protocol, header included. */
export interface Frame {
  /** Its letter; empty for the first message of a client, which has none. */
  readonly type: string;
  readonly bytes: Buffer;
}

/** Cuts a stream into messages, wherever the network has cut it. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);
  #hasLetter: boolean;

  constructor(side: "client" | "server") {
    this.#hasLetter = side === "server";
  }

  read(chunk: Buffer): readonly Frame[] {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    for (;;) {
      const letters = this.#hasLetter ? 1 : 0;
      if (this.#rest.length < letters + 4) return frames;
      const length = letters + this.#rest.readInt32BE(letters);
      if (this.#rest.length < length) return frames;
      const type = this.#hasLetter ? String.fromCharCode(this.#rest[0]!) : "";
      frames.push({ type, bytes: this.#rest.subarray(0, length) });
      this.#rest = this.#rest.subarray(length);
      this.#hasLetter = true;
    }
  }
}

/**
 * Which statement these messages execute: by its name or, where a pooler allows none, by the function it calls or the table it
 * inserts into; and those that begin and end transactions by their word.
 * @param words of the statements that this connection has prepared, by name
 */
export function statementOf(frames: readonly Frame[], words: Map<string, string>): string | null {
  const query = frames.find(({ type }) => type === "Q");
  if (query !== undefined) return wordOf(query.bytes.toString("utf8", 5));
  const parse = frames.find(({ type }) => type === "P");
  const [prepared = "", text = ""] = parse?.bytes.toString("utf8", 5).split("\0") ?? [];
  const word = wordOf(text);
  if (word !== null) words.set(prepared, word);
  const bind = frames.find(({ type }) => type === "B");
  if (bind === undefined) return null;
  const portalEnd = bind.bytes.indexOf(0, 5);
  const name = bind.bytes.toString("utf8", portalEnd + 1, bind.bytes.indexOf(0, portalEnd + 1));
  if (name !== "") return words.get(name) ?? name;
  return word ?? (/(\w+)_v\d+\(/.exec(text) ?? /^\s*insert into (?:\w+\.)?(\w+)/i.exec(text))?.[1] ?? null;
}

function wordOf(text: string): string | null {
  return /^\s*(begin|commit|rollback)\b/i.exec(text)?.[1]?.toLowerCase() ?? null;
}

/** Whether the client asks for notifications with this. */
export function isListen(frames: readonly Frame[]): boolean {
  return frames.some(
    ({ type, bytes }) => type === "Q" && /^\s*listen\b/i.test(bytes.toString("utf8", 5, 20)),
  );
}

/** What an ErrorResponse says in its field `C`. */
export function sqlStateOf({ bytes }: Frame): string {
  return /\0C([0-9A-Z]{5})\0/.exec(bytes.toString("latin1", 4))?.[1] ?? "";
}

/** What ReadyForQuery says: `I` outside of a transaction, `T` in one, `E` in one that has failed. */
export function transactionStatusOf({ bytes }: Frame): string {
  return String.fromCharCode(bytes[5] ?? 0);
}

/** The first column of a DataRow in text form; null for SQL's null. */
export function firstColumnOf({ bytes }: Frame): string | null {
  const length = bytes.readInt32BE(7);
  return length < 0 ? null : bytes.toString("utf8", 11, 11 + length);
}
