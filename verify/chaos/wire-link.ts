import type { Socket } from "node:net";
import {
  FrameReader,
  firstColumnOf,
  isListen,
  sqlStateOf,
  statementOf,
  transactionStatusOf,
  type Frame,
} from "./wire-frames.ts";

/** What happens to one execution of a statement. */
export interface Fault {
  /**
   * - `cut`: it never reaches the server, and the connection is gone.
   * - `lose`: the server carries it out; the answer is lost, and the connection is gone. Each statement is a
   *   transaction of its own, so this is the lost answer to a COMMIT.
   * - `hold`: as `lose`, but the connection stays, and the answer waits until it is let go.
   * - `delay`: it waits until it is let go, and then reaches the server.
   */
  readonly kind: "cut" | "lose" | "hold" | "delay";
  /** The last words of a prepared statement's name: `claim_runs`. */
  readonly statement: string;
  /** Whether an answer with these first columns is worth losing; one that is not passes. Default: every one is. */
  readonly isWorth?: (rows: readonly (string | null)[]) => boolean;
}

/** A fault that took place. */
export interface Hit {
  readonly fault: Fault;
  /** The first columns of the answer's rows; empty if there is no answer yet. */
  readonly rows: readonly (string | null)[];
  readonly statement: string;
  /** The server has committed, and said so. False where there is no answer yet, and inside of a transaction. */
  readonly isCommitted: boolean;
  /** Lets go what is held or delayed. */
  letGo(): void;
}

/** A fault that waits for its statement. */
export interface Armed {
  readonly fault: Fault;
  readonly hit: (hit: Hit) => void;
}

export interface Faults {
  /** A request for this statement: takes the fault that befalls it, or null. */
  request(statement: string): Armed | null;
  /** Whether a fault waits for an answer to this statement. */
  awaitsAnswer(statement: string): boolean;
  /** An answer to this statement, with these first columns: takes the fault that befalls it, or null. */
  answer(statement: string, rows: readonly (string | null)[]): Armed | null;
  /** The server answered with an error. */
  failed?(sqlState: string): void;
  /** The link is gone. */
  gone?(link: WireLink): void;
}

/** One connection through the proxy. */
export class WireLink {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #faults: Faults;
  readonly #requests = new FrameReader("client");
  readonly #answers = new FrameReader("server");
  readonly #words = new Map<string, string>();
  /** The statement whose answer a fault may befall. */
  #watched: string | null = null;
  #answer: Frame[] = [];
  #isListener = false;
  #swallowed: number | null = null;
  #isGone = false;

  constructor(client: Socket, server: Socket, faults: Faults) {
    this.#client = client;
    this.#server = server;
    this.#faults = faults;
  }

  open(): void {
    for (const socket of [this.#client, this.#server]) {
      // A half-open connection tells neither side of the other.
      const end = (): void => {
        if (this.#swallowed === null || socket === this.#client) this.cut();
      };
      socket.on("error", end);
      socket.on("close", end);
    }
    this.#client.on("data", (chunk) => {
      if (this.#swallowed === null) this.#pass(this.#requests.read(chunk));
      else this.#swallowed += chunk.length;
    });
    this.#server.on("data", (chunk) => {
      if (this.#swallowed === null) this.#passBack(this.#answers.read(chunk));
    });
  }

  /** Somebody listens for notifications on it. */
  get isListener(): boolean {
    return this.#isListener;
  }

  /** Bytes of the client's that were lost in it while it was half-open; null if it never was. */
  get swallowed(): number | null {
    return this.#swallowed;
  }

  /** From now on nothing passes, and nobody is told. */
  swallow(): void {
    this.#swallowed ??= 0;
  }

  cut(): void {
    this.#client.destroy();
    this.#server.destroy();
    if (this.#isGone) return;
    this.#isGone = true;
    this.#faults.gone?.(this);
  }

  #pass(frames: readonly Frame[]): void {
    const letGo = (): void => void this.#server.write(joined(frames));
    this.#isListener ||= isListen(frames);
    const statement = statementOf(frames, this.#words);
    const armed = statement === null ? null : this.#faults.request(statement);
    if (armed !== null) {
      if (armed.fault.kind === "cut") this.cut();
      armed.hit({ fault: armed.fault, rows: [], statement: statement ?? "", isCommitted: false, letGo });
      return;
    }
    if (statement !== null && this.#faults.awaitsAnswer(statement)) this.#watched = statement;
    letGo();
  }

  #passBack(frames: readonly Frame[]): void {
    for (const frame of frames) if (frame.type === "E") this.#faults.failed?.(sqlStateOf(frame));
    if (this.#watched === null) {
      this.#client.write(joined(frames));
      return;
    }
    this.#answer.push(...frames);
    if (this.#answer.at(-1)?.type === "Z") this.#finish(this.#watched, this.#answer);
  }

  /** The server has carried out the statement, and committed, unless it says that it has failed. */
  #finish(statement: string, answer: readonly Frame[]): void {
    this.#watched = null;
    this.#answer = [];
    const letGo = (): void => void this.#client.write(joined(answer));
    const rows = answer.filter(({ type }) => type === "D").map(firstColumnOf);
    const hasFailed = answer.some(({ type }) => type === "E");
    const armed = hasFailed ? null : this.#faults.answer(statement, rows);
    if (armed === null) return letGo();
    if (armed.fault.kind === "lose") this.cut();
    const last = answer.at(-1);
    const isCommitted = last !== undefined && transactionStatusOf(last) === "I";
    armed.hit({ fault: armed.fault, rows, statement, isCommitted, letGo });
  }
}

function joined(frames: readonly Frame[]): Buffer {
  return Buffer.concat(frames.map(({ bytes }) => bytes));
}
