import { hasLoneSurrogate } from "./name.ts";
import { Refusal } from "./refusal.ts";
import { deepest, hasPlainPrototype, isOrdinaryArray, isPlainHere, kindOfObject } from "./value-shape.ts";

/**
 * What a part of a value is: its kind; or the notes on what lies in it, by key; or both. Keys alone decide where a note
 * belongs, so notes are equal where values are, whatever the order of their keys.
 */
type Note = string | NotesWithin | readonly [kind: string, within: NotesWithin];

interface NotesWithin {
  readonly [key: string]: Note;
}

export interface RichValue {
  readonly json: unknown;
  /** Null where JSON says it all. */
  readonly types: Note | null;
}

interface Members extends RichValue {
  readonly types: NotesWithin | null;
}

/** Copies a value into what JSON can say of it, and notes of the rest. Reads every part once: what is checked is what is written. */
export class RichValueWriter {
  readonly #most: number;
  #left: number;
  /** Where it is: what is thrown here happened there. */
  readonly #path: (string | number)[] = [];
  readonly #around = new Set<object>();

  constructor(most: number) {
    this.#most = most;
    this.#left = most;
  }

  /** @throws {Refusal} */
  write(value: unknown): RichValue {
    try {
      return this.#write(value);
    } catch (error) {
      if (error instanceof Refusal) throw error;
      throw new Refusal(writePath(this.#path), "cannot be read", { cause: error });
    }
  }

  #write(value: unknown): RichValue {
    switch (typeof value) {
      case "string":
        this.#checkText(value);
        return plain(value);
      case "boolean":
        this.#spend(1);
        return plain(value);
      case "number":
        this.#spend(1);
        return writeNumber(value);
      case "undefined":
        this.#spend(1);
        return { json: null, types: "undefined" };
      case "bigint":
        return { json: this.#checkText(value.toString()), types: "bigint" };
      case "object":
        this.#spend(1);
        return value === null ? plain(null) : this.#writeAround(value);
      case "function":
      case "symbol":
      default:
        throw this.#refuse(`is a ${typeof value}, which cannot be stored`);
    }
  }

  #writeAround(value: object): RichValue {
    if (this.#around.has(value)) throw this.#refuse("lies in a circle");
    if (this.#around.size >= deepest) throw this.#refuse(`lies deeper than ${deepest} levels`);
    this.#around.add(value);
    const written = this.#writeObject(value);
    this.#around.delete(value);
    return written;
  }

  #writeObject(value: object): RichValue {
    if (Array.isArray(value)) return this.#writeArray(value);
    const kind = isPlainHere(value) ? null : kindOfObject(value);
    switch (kind) {
      case "Date":
        return { json: this.#writeDate(value as Date), types: kind };
      case "Map":
        this.#refuseProperties(value);
        return this.#writeList(kind, [...Map.prototype.entries.call(value)]);
      case "Set":
        this.#refuseProperties(value);
        return this.#writeList(kind, [...Set.prototype.values.call(value)]);
      case "Uint8Array":
      case "Buffer":
        return { json: this.#writeBytes(value as Uint8Array), types: kind };
      case "Error":
        return withKind(kind, this.#writeMembers(value, keysOfError(value as Error)));
      case null:
        if (!hasPlainPrototype(value)) throw this.#refuse(describeClass(value));
        if (Object.getOwnPropertySymbols(value).length > 0) throw this.#refuse("has a symbol for a key");
        return this.#writeMembers(value, Object.keys(value));
      default:
        return kind satisfies never;
    }
  }

  #writeDate(date: Date): string | null {
    const ms = Date.prototype.getTime.call(date);
    this.#refuseProperties(date);
    return Number.isNaN(ms) ? null : Date.prototype.toISOString.call(date);
  }

  #writeBytes(bytes: Uint8Array): string {
    this.#spend(bytes.byteLength);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  }

  #writeArray(array: readonly unknown[]): RichValue {
    if (!isOrdinaryArray(array)) throw this.#refuse(describeClass(array));
    this.#spend(array.length);
    const own = Object.keys(array);
    const named = own.find((key, index) => !isIndexUpTo(key, index, array.length));
    if (named !== undefined) throw this.#refuse(`is an array with a property "${named}"`);
    const json: unknown[] = [];
    const notes = new Notes();
    for (let index = 0; index < array.length; index++) {
      if (!Object.hasOwn(array, index)) {
        json.push(null);
        notes.add(String(index), "hole");
      } else json.push(notes.take(String(index), this.#within(index, array[index])));
    }
    return { json, types: notes.all() };
  }

  /** The members of a map or set: each entry of a map is an array of its own. */
  #writeList(kind: "Map" | "Set", members: readonly unknown[]): RichValue {
    const notes = new Notes();
    const json = members.map((member, index) => {
      if (kind === "Set") return notes.take(String(index), this.#within(index, member));
      const [key, value] = member as readonly [unknown, unknown];
      const entry = new Notes();
      this.#path.push(index);
      const pair = [entry.take("0", this.#within(0, key)), entry.take("1", this.#within(1, value))];
      this.#path.pop();
      return notes.take(String(index), { json: pair, types: entry.all() });
    });
    return withKind(kind, { json, types: notes.all() });
  }

  #writeMembers(value: object, keys: Iterable<string>): Members {
    const json: Record<string, unknown> = {};
    const notes = new Notes();
    for (const key of keys) {
      this.#path.push(key);
      this.#checkText(key);
      put(json, key, notes.take(key, this.#write((value as Readonly<Record<string, unknown>>)[key])));
      this.#path.pop();
    }
    return { json, types: notes.all() };
  }

  #within(key: string | number, value: unknown): RichValue {
    this.#path.push(key);
    const written = this.#write(value);
    this.#path.pop();
    return written;
  }

  #refuseProperties(value: object): void {
    const [key] = Object.keys(value);
    if (key !== undefined) throw this.#refuse(`has a property "${key}" of its own`);
  }

  #checkText(text: string): string {
    this.#spend(text.length);
    if (text.includes("\0")) throw this.#refuse("holds a NUL character, which Postgres cannot store");
    if (hasLoneSurrogate(text)) throw this.#refuse("holds half of a surrogate pair, which is not Unicode");
    return text;
  }

  /** Counts less than the bytes that are written; ends early what would take for ever to write. */
  #spend(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw Refusal.tooLarge(this.#most);
  }

  #refuse(fault: string): Refusal {
    return new Refusal(writePath(this.#path), fault);
  }
}

/** Gathers the notes on what lies in one object. */
class Notes {
  #within: Record<string, Note> | null = null;

  add(key: string, note: Note): void {
    put((this.#within ??= {}), key, note);
  }

  take(key: string, { json, types }: RichValue): unknown {
    if (types !== null) this.add(key, types);
    return json;
  }

  all(): NotesWithin | null {
    return this.#within;
  }
}

/** Every key is only a key. */
function put<Member>(members: Record<string, Member>, key: string, member: Member): void {
  if (key === "__proto__")
    Object.defineProperty(members, key, {
      value: member,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  else members[key] = member;
}

function plain(json: unknown): RichValue {
  return { json, types: null };
}

function withKind(kind: string, { json, types }: Members): RichValue {
  return { json, types: types === null ? kind : [kind, types] };
}

function writeNumber(value: number): RichValue {
  if (Object.is(value, -0)) return { json: 0, types: "-0" };
  return Number.isFinite(value) ? plain(value) : { json: String(value), types: "number" };
}

/** What every error has, then what its maker added to it. */
function keysOfError(error: Error): Iterable<string> {
  const hidden = ["cause", "errors"].filter((key) => Object.hasOwn(error, key));
  const added = Object.keys(error);
  return new Set(["name", "message", ...(error.stack === undefined ? [] : ["stack"]), ...hidden, ...added]);
}

/** Indices come first and in their order, so the key at each place tells. */
function isIndexUpTo(key: string, place: number, length: number): boolean {
  const index = Number(key);
  return Number.isInteger(index) && index >= place && index < length && String(index) === key;
}

function describeClass(value: object): string {
  const { constructor } = value;
  const name =
    typeof constructor === "function" && constructor.name !== "" ? constructor.name : "another prototype";
  const hint = "toJSON" in value ? " (its toJSON is not called)" : "";
  return `is of the class ${name}${hint}: turn it into plain objects, arrays, strings and numbers`;
}

function writePath(path: readonly (string | number)[]): string {
  return `$${path.map(writeKey).join("")}`;
}

function writeKey(key: string | number): string {
  if (typeof key === "number") return `[${key}]`;
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}
