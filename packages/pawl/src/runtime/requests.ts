import { append } from "../core/append.ts";
import { requestId, type FactMeaning } from "../core/fact.ts";
import { updateName } from "../core/request-key.ts";
import type { Topic } from "../store/message.ts";
import { isHeldUp, leaveBranch } from "./race.ts";
import type { PauseRequest, Request, SleepRequest, UpdateRequest, WaitRequest } from "./request.ts";

type TimedRequest = SleepRequest | WaitRequest;
type MessageRequest = WaitRequest | UpdateRequest;

/** The requests whose answer the code does not have yet, found by what may happen to them next. */
export interface Requests {
  /** Without those of the background: handlers that wait for updates. */
  size(): number;
  add(request: Request): void;
  find(asked: Pick<FactMeaning, "family" | "key">): Request | undefined;
  /** In the order asked. */
  all(): readonly Request[];
  /** Those that are held back, in the order asked; each is answered once. */
  takeHeld(): readonly Request[];
  /** Open requests that a timer or a message may answer. */
  timed(): Iterable<TimedRequest>;
  awaitedTopics(): Iterable<Topic>;
  /** Pauses that have begun and are not over. */
  pauses(): Iterable<PauseRequest>;
  isPaused(): boolean;
  /** The first that may take a message on this topic now. */
  earliestWait(topic: Topic): MessageRequest | undefined;
  /** Its answer is on the way into the history: nothing else can answer it any more. */
  close(request: Request): void;
  /** The code has its answer. */
  settle(request: Request): void;
}

export function createRequests(): Requests {
  return new OpenRequests();
}

/** What few runs need is made when it is needed. */
class OpenRequests implements Requests {
  /** The only one that is unsettled: most code asks for one thing at a time, and a map makes its tables anew whenever its last entry goes. */
  #only: Request | null = null;
  /** All of them, where there are several. */
  #unsettled: Map<string, Request> | null = null;
  #waits: Map<Topic, Set<MessageRequest>> | null = null;
  #timed: Set<TimedRequest> | null = null;
  #children: Set<Request> | null = null;
  #pauses: Set<PauseRequest> | null = null;
  #held: Request[] = [];
  #inBackground = 0;

  size(): number {
    return (this.#only === null ? (this.#unsettled?.size ?? 0) : 1) - this.#inBackground;
  }

  add(request: Request): void {
    this.#keep(request);
    if (request.state === "held") this.#held = append(this.#held, request);
    if (request.family === "child") (this.#children ??= new Set()).add(request);
    if (request.family === "sleep" || request.family === "wait") (this.#timed ??= new Set()).add(request);
    if (request.family === "pause") (this.#pauses ??= new Set()).add(request);
    if (request.family === "update") this.#inBackground += 1;
    if (request.family !== "wait" && request.family !== "update") return;
    this.#waits ??= new Map();
    const topic = topicOf(request);
    this.#waits.set(topic, (this.#waits.get(topic) ?? new Set()).add(request));
  }

  find(asked: Pick<FactMeaning, "family" | "key">): Request | undefined {
    return this.#get(requestId(asked));
  }

  all(): readonly Request[] {
    return this.#only === null ? [...(this.#unsettled?.values() ?? [])] : [this.#only];
  }

  takeHeld(): readonly Request[] {
    if (this.#held.length === 0) return this.#held;
    const held = this.#held;
    this.#held = [];
    return held.every(isHeld) ? held : held.filter(isHeld);
  }

  timed(): Iterable<TimedRequest> {
    return this.#timed ?? [];
  }

  *pauses(): Iterable<PauseRequest> {
    for (const pause of this.#pauses ?? []) if (pause.state === "issued") yield pause;
  }

  isPaused(): boolean {
    if (this.#pauses === null) return false;
    for (const { state } of this.#pauses) if (state === "issued") return true;
    return false;
  }

  *awaitedTopics(): Iterable<Topic> {
    if (this.#waits !== null) yield* this.#waits.keys();
    if (this.#children !== null && this.#children.size > 0) yield "child";
  }

  earliestWait(topic: Topic): MessageRequest | undefined {
    for (const wait of this.#waits?.get(topic) ?? []) if (!isHeldUp(wait)) return wait;
    return undefined;
  }

  close(request: Request): void {
    request.state = "answering";
    this.#forget(request);
  }

  settle(request: Request): void {
    request.state = "settled";
    this.#forget(request);
    leaveBranch(request);
    if (this.#drop(request.id) && request.family === "update") this.#inBackground -= 1;
  }

  #keep(request: Request): void {
    if (this.#only === null && (this.#unsettled === null || this.#unsettled.size === 0)) {
      this.#only = request;
      return;
    }
    this.#unsettled ??= new Map();
    if (this.#only !== null) this.#unsettled.set(this.#only.id, this.#only);
    this.#only = null;
    this.#unsettled.set(request.id, request);
  }

  #get(id: string): Request | undefined {
    if (this.#only !== null) return this.#only.id === id ? this.#only : undefined;
    return this.#unsettled?.get(id);
  }

  #drop(id: string): boolean {
    if (this.#only === null) return this.#unsettled?.delete(id) === true;
    if (this.#only.id !== id) return false;
    this.#only = null;
    return true;
  }

  #forget(request: Request): void {
    if (request.family === "step") return;
    this.#children?.delete(request);
    if (request.family === "pause") this.#pauses?.delete(request);
    if ("dueAt" in request) this.#timed?.delete(request);
    if (request.family !== "wait" && request.family !== "update") return;
    const topic = topicOf(request);
    const others = this.#waits?.get(topic);
    others?.delete(request);
    if (others?.size === 0) this.#waits?.delete(topic);
  }
}

function isHeld({ state }: Request): boolean {
  return state === "held";
}

function topicOf(request: MessageRequest): Topic {
  return request.family === "wait" ? `signal:${request.signal}` : updateName(request.update);
}
