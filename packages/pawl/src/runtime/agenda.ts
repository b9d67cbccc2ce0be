import { describeStart, startedChild } from "../core/child-end.ts";
import type { RunEvent } from "../core/event.ts";
import { describeWithdrawn } from "../core/fact.ts";
import type { Ids, RunId } from "../core/ids.ts";
import type { Log } from "../core/log.ts";
import { placeOfEvent, placeOfInput, placeOfMessage } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { describeError } from "../core/recorded-error.ts";
import { parseWith } from "../core/schema.ts";
import type { ClaimedRun } from "../store/lease.ts";
import type { Message, Topic } from "../store/message.ts";
import { plainRun, type NewRun } from "../store/run-record.ts";
import { abandonedChildren } from "./abandoned.ts";
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
  const { claimed, holding, inbox, steps, streams, ids, log, payloads } = parts;
  const { runId } = claimed;
  const abandoned = abandonedChildren(parts.history);

  const issueOne = (request: Request): void => {
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
        startChild(request, request.child);
        return;
      case "child":
        if (request.child !== null) request.childId = startChild(request, request.child);
        return;
      case "publish":
        publish(request);
        return;
      case "update":
        request.state = "issued";
        return;
      case "answer":
        answerUpdate(request, parts);
        requests.close(request);
        return;
      case "stream":
        streams.issue(request);
        requests.close(request);
        return;
      case "pause":
        pause(request);
        return;
      default:
        request satisfies never;
    }
  };

  /** Nothing but its own record answers it. */
  const publish = (request: PublishRequest): void => {
    const fact = { kind: "published", name: request.key } as const;
    holding.add({ ...fact, data: payloads.seal(request.value, placeOfEvent(runId, fact)) });
    requests.close(request);
  };

  const pause = (request: PauseRequest): void => {
    request.state = "issued";
    const fact = { kind: "paused", name: request.key } as const;
    holding.add({ ...fact, data: payloads.seal(request.reason, placeOfEvent(runId, fact)) });
  };

  const startChild = (request: StartRequest | ChildRequest, terms: ChildTerms): RunId => {
    request.state = request.family === "start" ? "answering" : "issued";
    const id = ids.next();
    const input = payloads.seal(terms.input, placeOfInput(id));
    const child = newChild(id, claimed, request.key, { ...terms, input }, holding.time.estimate());
    const data = describeStart(id, request.family === "start");
    holding.add({ kind: "child_started", name: request.key, data }, child);
    return id;
  };

  const receive = async (message: Message, wait: WaitRequest): Promise<void> => {
    const parsed = await parseSignal(message, wait);
    const data = parsed.fault === null ? parsed.seal() : null;
    const takes = inbox.take(message);
    if (parsed.fault === null) {
      requests.close(wait);
      holding.add({ kind: "signal_received", name: wait.key, data, takes });
      return;
    }
    // A sender's mistake must not fail the run, nor hold up the signals behind it.
    log.warn(`A signal "${wait.signal}" was dropped: ${parsed.fault}`, { messageId: message.id });
    const fact = { kind: "signal_received", name: null } as const;
    const dropped = { signal: wait.signal, dropped: parsed.fault };
    holding.add({ ...fact, data: payloads.encode(dropped, placeOfEvent(runId, fact)), takes });
  };

  /** A signal is parsed once, and its parsed form recorded. */
  const parseSignal = async (
    message: Message,
    { schema, signal, key }: WaitRequest,
  ): Promise<ParsedSignal> => {
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
  };

  /** Recorded even if nobody asks, as after a failed attempt: unread, it would wake the run again and again. */
  const takeChildEnd = (message: Message): void => {
    // One that lost a race may end when the next attempt has another child under its name.
    const name = abandoned.has(startedChild(message.data) ?? message.id) ? null : message.name;
    const request = name === null ? undefined : requests.find({ family: "child", key: name });
    if (request !== undefined) requests.close(request);
    holding.add({ kind: "child_ended", name, data: message.data, takes: inbox.take(message) });
  };

  return {
    issue() {
      for (const request of requests.takeHeld()) issueOne(request);
    },
    begin(request) {
      if (request.state === "held") startChild(request, request.child);
    },
    async withdraw(request) {
      const { family, key } = request;
      if (family === "child" && request.childId !== null) {
        // Told first: should we die before the fact is there, the next holder does it again.
        await holding.cancelChild(request.childId, lifeOf(parts.history));
        abandoned.add(request.childId);
      }
      holding.add({ kind: "withdrawn", name: key, data: describeWithdrawn(family) });
    },
    async takeMessages() {
      for (;;) {
        const topics = [...requests.awaitedTopics()].filter((topic) => requests.earliestWait(topic));
        const message = inbox.oldest(["child", ...topics]);
        if (message === null) return;
        const wait = requests.earliestWait(message.topic);
        if (wait === undefined) takeChildEnd(message);
        else if (wait.family === "update") await receiveUpdate(message, wait, parts, requests);
        else await receive(message, wait);
      }
    },
    fireTimers() {
      for (const request of requests.timed()) {
        if ((request.dueAt ?? Infinity) > holding.time.reached || isHeldUp(request)) continue;
        requests.close(request);
        holding.add({ kind: "timer_fired", name: request.key, data: null });
      }
      steps.beginDue();
    },
    nextDueAt() {
      let next = steps.nextDueAt();
      for (const { dueAt } of requests.timed()) next = earliest(next, dueAt);
      return next;
    },
    endPauses(resumedSeq) {
      for (const request of requests.pauses()) {
        if ((request.pausedSeq ?? Infinity) > resumedSeq) continue;
        requests.close(request);
        holding.add({ kind: "resumed", name: request.key, data: null });
      }
    },
    wants: () => [...requests.awaitedTopics()],
  };
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
