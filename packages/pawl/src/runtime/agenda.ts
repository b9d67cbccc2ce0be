import { describeStart, startedChild } from "../core/child-end.ts";
import type { RunEvent } from "../core/event.ts";
import { describeWithdrawn } from "../core/fact.ts";
import type { Ids, RunId } from "../core/ids.ts";
import type { Payload } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent, placeOfInput, placeOfMessage } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { describeError } from "../core/recorded-error.ts";
import { parseWith } from "../core/schema.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Message, Topic } from "../store/message.ts";
import { plainRun, type NewRun } from "../store/run-record.ts";
import { abandonedChildren } from "./abandoned.ts";
import type { Fact } from "./gathered.ts";
import type { Holding } from "./holding.ts";
import type { Inbox } from "./inbox.ts";
import { isHeldUp } from "./race.ts";
import type {
  ChildRequest,
  ChildTerms,
  PauseRequest,
  PublishRequest,
  Request,
  StartRequest,
  WaitRequest,
} from "./request.ts";
import type { Requests } from "./requests.ts";
import type { Steps } from "./steps.ts";
import type { Streams } from "./streams.ts";
import { answerUpdate, receiveUpdate } from "./updates.ts";

/** What the run is about: begins what the code has asked for, and finds out what has become of it. */
export interface Agenda {
  /** Begins every request that is held back. */
  issue(): void;
  /** Begins this one, unless it has begun. */
  begin(request: StartRequest): void;
  /** Gives up what was begun for this request, which nobody awaits any more. */
  withdraw(request: Request): Promise<void>;
  /**
   * Gives each message to the request it answers, the oldest to the earliest.
   * @throws {PawlError} where one cannot be read here: it stays unread
   */
  takeMessages(): Promise<void>;
  /** Lets the timers fire, and steps be tried again, whose time has certainly come. */
  fireTimers(): void;
  /** When the next timer fires, or the next attempt at a step is due. */
  nextDueAt(): number | null;
  /** The timer that fires at this instant, by its request; undefined: none does, or something else is due then. */
  firesAt(instant: number): string | undefined;
  /** Ends the pauses that began before the run was last resumed. */
  endPauses(resumedSeq: number): void;
  /** Which messages would answer a request. */
  wants(): readonly Topic[];
}

export interface AgendaParts {
  readonly claimed: ClaimedRun;
  readonly history: readonly RunEvent[];
  readonly holding: Holding;
  readonly inbox: Inbox;
  readonly steps: Steps;
  readonly streams: Streams;
  readonly ids: Ids;
  readonly log: Log;
  readonly payloads: Payloads;
}

export function createAgenda(parts: AgendaParts, requests: Requests): Agenda {
  return new RunAgenda(parts, requests);
}

class RunAgenda implements Agenda {
  readonly #parts: AgendaParts;
  readonly #requests: Requests;
  /** Children that lost a race; made when it is needed. */
  #abandoned: Set<RunId> | null = null;

  constructor(parts: AgendaParts, requests: Requests) {
    this.#parts = parts;
    this.#requests = requests;
  }

  issue(): void {
    for (const request of this.#requests.takeHeld()) this.#issueOne(request);
  }

  begin(request: StartRequest): void {
    if (request.state === "held") this.#startChild(request, request.child);
  }

  async withdraw(request: Request): Promise<void> {
    const { holding, history } = this.#parts;
    const { family, key } = request;
    if (family === "child" && request.childId !== null) {
      // Told first: should we die before the fact is there, the next holder does it again.
      await holding.cancelChild(request.childId, lifeOf(history));
      this.#abandonedChildren().add(request.childId);
    }
    holding.add({ kind: "withdrawn", name: key, data: describeWithdrawn(family) });
  }

  async takeMessages(): Promise<void> {
    const requests = this.#requests;
    for (;;) {
      const topics = [...requests.awaitedTopics()].filter((topic) => requests.earliestWait(topic));
      const message = this.#parts.inbox.oldest(["child", ...topics]);
      if (message === null) return;
      const wait = requests.earliestWait(message.topic);
      if (wait === undefined) this.#takeChildEnd(message);
      else if (wait.family === "update") await receiveUpdate(message, wait, this.#parts, requests);
      else await this.#receive(message, wait);
    }
  }

  fireTimers(): void {
    const { holding, steps } = this.#parts;
    for (const request of this.#requests.timed()) {
      if ((request.dueAt ?? Infinity) > holding.time.reached || isHeldUp(request)) continue;
      this.#requests.close(request);
      holding.add({ kind: "timer_fired", name: request.key, data: null });
    }
    steps.beginDue();
  }

  nextDueAt(): number | null {
    let next = this.#parts.steps.nextDueAt();
    for (const { dueAt } of this.#requests.timed()) next = earliest(next, dueAt);
    return next;
  }

  firesAt(instant: number): string | undefined {
    if (this.#parts.steps.nextDueAt() === instant) return undefined;
    for (const request of this.#requests.timed()) if (request.dueAt === instant) return request.key;
    return undefined;
  }

  endPauses(resumedSeq: number): void {
    for (const request of this.#requests.pauses()) {
      if ((request.pausedSeq ?? Infinity) > resumedSeq) continue;
      this.#requests.close(request);
      this.#parts.holding.add({ kind: "resumed", name: request.key, data: null });
    }
  }

  wants(): readonly Topic[] {
    return [...this.#requests.awaitedTopics()];
  }

  #issueOne(request: Request): void {
    const { holding, steps, streams } = this.#parts;
    switch (request.family) {
      case "step":
        steps.start(request);
        return;
      case "sleep":
      case "wait":
        request.state = "issued";
        if (request.timer !== null)
          holding.add({ kind: "timer_set", name: request.key, data: null, ...request.timer });
        return;
      case "start":
        this.#startChild(request, request.child);
        return;
      case "child":
        if (request.child !== null) request.childId = this.#startChild(request, request.child);
        return;
      case "publish":
        this.#publish(request);
        return;
      case "update":
        request.state = "issued";
        return;
      case "answer":
        answerUpdate(request, this.#parts);
        this.#requests.close(request);
        return;
      case "stream":
        streams.issue(request);
        this.#requests.close(request);
        return;
      case "pause":
        this.#pause(request);
        return;
      default:
        request satisfies never;
    }
  }

  /** Nothing but its own record answers it. */
  #publish(request: PublishRequest): void {
    this.#addSealed({ kind: "published", name: request.key }, request.value);
    this.#requests.close(request);
  }

  #pause(request: PauseRequest): void {
    request.state = "issued";
    this.#addSealed({ kind: "paused", name: request.key }, request.reason);
  }

  #addSealed(fact: Pick<Fact, "kind" | "name">, value: Payload | null): void {
    const { holding, payloads, claimed } = this.#parts;
    holding.add({ ...fact, data: payloads.seal(value, placeOfEvent(claimed.runId, fact)) });
  }

  #startChild(request: StartRequest | ChildRequest, terms: ChildTerms): RunId {
    const { holding, payloads, claimed, ids } = this.#parts;
    request.state = request.family === "start" ? "answering" : "issued";
    const id = ids.next();
    const input = payloads.seal(terms.input, placeOfInput(id));
    const child = newChild(id, claimed, request.key, { ...terms, input }, holding.time.estimate());
    const data = describeStart(id, request.family === "start");
    holding.add({ kind: "child_started", name: request.key, data }, child);
    return id;
  }

  async #receive(message: Message, wait: WaitRequest): Promise<void> {
    const { holding, inbox, log, payloads, claimed } = this.#parts;
    const parsed = await this.#parseSignal(message, wait);
    const data = parsed.fault === null ? parsed.seal() : null;
    const takes = inbox.take(message);
    if (parsed.fault === null) {
      this.#requests.close(wait);
      holding.add({ kind: "signal_received", name: wait.key, data, takes });
      return;
    }
    // A sender's mistake must not fail the run, nor hold up the signals behind it.
    log.warn(`A signal "${wait.signal}" was dropped: ${parsed.fault}`, { messageId: message.id });
    const fact = { kind: "signal_received", name: null } as const;
    const dropped = { signal: wait.signal, dropped: parsed.fault };
    holding.add({ ...fact, data: payloads.encode(dropped, placeOfEvent(claimed.runId, fact)), takes });
  }

  /** A signal is parsed once, and its parsed form recorded. */
  async #parseSignal(message: Message, { schema, signal, key }: WaitRequest): Promise<ParsedSignal> {
    const { payloads, claimed } = this.#parts;
    const { runId } = claimed;
    const sentTo = placeOfMessage(message.sentTo ?? runId, message.topic);
    const place = placeOfEvent(runId, { kind: "signal_received", name: key });
    if (schema === null) return { fault: null, seal: () => payloads.move(message.data, sentTo, place) };
    const received = payloads.decode(message.data, sentTo);
    try {
      const written = payloads.write(await parseWith(schema, received, `signal "${signal}"`));
      return { fault: null, seal: () => payloads.seal(written, place) };
    } catch (error) {
      return { fault: describeError(error).message };
    }
  }

  /** Recorded even if nobody asks, as after a failed attempt: unread, it would wake the run again and again. */
  #takeChildEnd(message: Message): void {
    const { holding, inbox } = this.#parts;
    // One that lost a race may end when the next attempt has another child under its name.
    const isAbandoned = this.#abandonedChildren().has(startedChild(message.data) ?? message.id);
    const name = isAbandoned ? null : message.name;
    const request = name === null ? undefined : this.#requests.find({ family: "child", key: name });
    if (request !== undefined) this.#requests.close(request);
    holding.add({ kind: "child_ended", name, data: message.data, takes: inbox.take(message) });
  }

  #abandonedChildren(): Set<RunId> {
    return (this.#abandoned ??= abandonedChildren(this.#parts.history));
  }
}

/** The `seq` with which the run's present life began; 0: it was never redriven. */
function lifeOf(history: readonly RunEvent[]): number {
  return history.findLast(({ kind }) => kind === "redriven")?.seq ?? 0;
}

type ParsedSignal =
  | { readonly fault: null; readonly seal: () => Message["data"] }
  | { readonly fault: string };

function newChild(id: RunId, parent: ClaimedRun, request: string, terms: ChildTerms, now: number): NewRun {
  const { workflow, version, queue, priority, tags, retry, isRaw, isDetached, input } = terms;
  const { timeoutMs, expiresInMs } = terms;
  const ownDeadline = timeoutMs === null ? null : now + timeoutMs;
  return {
    ...plainRun,
    id,
    workflow,
    version,
    queue,
    priority,
    tags,
    retry,
    isRaw,
    isDetached,
    input,
    expiresAt: expiresInMs === null ? null : now + expiresInMs,
    // What may outlive its parent may outlive its time.
    deadlineAt: isDetached ? ownDeadline : earliest(parent.deadlineAt, ownDeadline),
    parent: { id: parent.runId, request },
  };
}

export function earliest(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b);
}
