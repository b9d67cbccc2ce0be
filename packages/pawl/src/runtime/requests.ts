import { requestId } from "../core/fact.ts";
import { updateName } from "../core/request-key.ts";
import type { Topic } from "../store/message.ts";
import type { RequestId } from "./delivery.ts";
import { isHeldUp, leaveBranch } from "./race.ts";
import type { Request, SleepRequest, UpdateRequest, WaitRequest } from "./request.ts";

type TimedRequest = SleepRequest | WaitRequest;
type MessageRequest = WaitRequest | UpdateRequest;

/** The requests whose answer the code does not have yet, found by what may happen to them next. */
export interface Requests {
  /** Without those of the background: handlers that wait for updates. */
  size(): number;
  add(request: Request): void;
  find(id: RequestId): Request | undefined;
  /** In the order asked. */
  all(): readonly Request[];
  /** Those that are held back, in the order asked; each is answered once. */
  takeHeld(): readonly Request[];
  /** Open requests that a timer or a message may answer. */
  timed(): Iterable<TimedRequest>;
  awaitedTopics(): Iterable<Topic>;
  /** The first that may take a message on this topic now. */
  earliestWait(topic: Topic): MessageRequest | undefined;
  /** Its answer is on the way into the history: nothing else can answer it any more. */
  close(request: Request): void;
  /** The code has its answer. */
  settle(request: Request): void;
}

export function createRequests(): Requests {
  const unsettled = new Map<string, Request>();
  const waits = new Map<Topic, Set<MessageRequest>>();
  const timed = new Set<TimedRequest>();
  const children = new Set<Request>();
  let held: Request[] = [];
  let inBackground = 0;

  const forget = (request: Request): void => {
    children.delete(request);
    if ("dueAt" in request) timed.delete(request);
    if (request.family !== "wait" && request.family !== "update") return;
    const topic = topicOf(request);
    const others = waits.get(topic);
    others?.delete(request);
    if (others?.size === 0) waits.delete(topic);
  };

  return {
    size: () => unsettled.size - inBackground,
    add(request) {
      unsettled.set(requestId(request), request);
      if (request.state === "held") held.push(request);
      if (request.family === "child") children.add(request);
      if (request.family === "sleep" || request.family === "wait") timed.add(request);
      if (request.family === "update") inBackground += 1;
      if (request.family !== "wait" && request.family !== "update") return;
      const topic = topicOf(request);
      waits.set(topic, (waits.get(topic) ?? new Set()).add(request));
    },
    find: (id) => unsettled.get(requestId(id)),
    all: () => [...unsettled.values()],
    takeHeld() {
      const taken = held.filter(({ state }) => state === "held");
      held = [];
      return taken;
    },
    timed: () => timed,
    *awaitedTopics() {
      yield* waits.keys();
      if (children.size > 0) yield "child";
    },
    earliestWait(topic) {
      for (const wait of waits.get(topic) ?? []) if (!isHeldUp(wait)) return wait;
      return undefined;
    },
    close(request) {
      request.state = "answering";
      forget(request);
    },
    settle(request) {
      request.state = "settled";
      forget(request);
      leaveBranch(request);
      if (unsettled.delete(requestId(request)) && request.family === "update") inBackground -= 1;
    },
  };
}

function topicOf(request: MessageRequest): Topic {
  return request.family === "wait" ? `signal:${request.signal}` : updateName(request.update);
}
