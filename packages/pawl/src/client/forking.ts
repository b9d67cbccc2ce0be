import { PawlError } from "../core/error.ts";
import { prefixBefore, requestKeys } from "../core/fork.ts";
import { describeFork } from "../core/forked.ts";
import type { RunId } from "../core/ids.ts";
import { latestInstant } from "../core/instant.ts";
import type { Payload } from "../core/json.ts";
import { placeOfEvent, placeOfInput, type PayloadPlace } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import { moveUpdate } from "../core/update.ts";
import { plainRun, type ForkedEvent, type NewRun, type RunRecord } from "../store/run-record.ts";
import type { Connection } from "./connection.ts";
import { readForkOptions, type ForkOptions } from "./fork-options.ts";
import { assertRunId, notFound } from "./run-id.ts";

/** What one call to the store carries. */
const mostBytes = 32_000_000;
const mostKeysShown = 20;

export function createForking(
  connection: Connection,
): (runId: RunId, options: ForkOptions) => Promise<RunId> {
  const { store, storeClock, ids, payloads, call, emit } = connection;

  /** For the new run and its place there. How a child ended was written for the child, and stays so. */
  const moveEvent = (event: Omit<ForkedEvent, "seq">, from: RunId, to: RunId): Omit<ForkedEvent, "seq"> => {
    const { kind, data } = event;
    if (kind === "child_ended" || data === null) return event;
    const move = kind === "update_received" || kind === "update_answered" ? moveUpdate : moveWhole;
    return { ...event, data: move(data, placeOfEvent(from, event), placeOfEvent(to, event), payloads) };
  };

  const newRun = (source: RunRecord, options: ForkOptions, id: RunId, isRaw: boolean): NewRun => {
    const { key = null, tags, queue } = options;
    const hasInput = options.input !== undefined;
    const place = placeOfInput(id);
    const written = hasInput ? payloads.write(options.input, "The input of the fork") : null;
    const input = hasInput
      ? payloads.seal(written, place, key !== null)
      : payloads.move(source.input, placeOfInput(source.id), place, key !== null);
    // As long as its source had.
    const since = source.startAt ?? source.createdAt;
    const deadlineAt =
      source.deadlineAt === null
        ? null
        : Math.min(latestInstant, Math.ceil(storeClock.now() + source.deadlineAt - since));
    return {
      ...plainRun,
      id,
      workflow: source.workflow,
      version: source.version,
      queue: queue ?? source.queue,
      priority: source.priority,
      input,
      // Whoever takes it first parses what nobody has parsed.
      isRaw: isRaw || hasInput,
      key,
      tags: [...new Set(tags ?? source.tags)],
      retry: source.retry,
      deadlineAt,
      forkedFrom: source.id,
    };
  };

  return async (sourceId, given) => {
    assertRunId(sourceId);
    const options = readForkOptions(given);
    const source = await call(() => store.getRun(sourceId));
    if (source === null) throw notFound(sourceId);
    const history = await call(() => store.loadHistory(sourceId, 0));
    const prefix = prefixBefore(options.from, history, source);
    if (prefix === null) throw unknownStep(sourceId, options.from, requestKeys(history));
    await call(() => storeClock.learn());

    const id = ids.next();
    const isRaw = history.some(({ kind }) => kind === "input_parsed");
    const run = newRun(source, options, id, isRaw);
    const isKept = ({ kind }: { readonly kind: string }): boolean =>
      options.input === undefined || kind !== "input_parsed";
    const copy = (event: Omit<ForkedEvent, "seq">): Omit<ForkedEvent, "seq"> =>
      moveEvent(event, sourceId, id);
    const data = describeFork({ from: sourceId, ...prefix.fork });
    const forked = {
      kind: "forked",
      name: null,
      at: null,
      attempt: null,
      beganAt: null,
      dueAt: null,
      data,
    } as const;
    const events = [
      ...prefix.earlier.filter(isKept).map(copy),
      forked,
      ...prefix.present.filter(isKept).map(copy),
    ].map((event, index): ForkedEvent => ({ ...event, seq: index + 1 }));
    assertFits(sourceId, events);

    const answer = await call(() => store.fork(run, events));
    if (answer.kind === "conflict") throw keyConflict(run.key, answer.id);
    if (answer.kind === "created") {
      const { workflow, version, queue, key } = run;
      const at = new Date(storeClock.now());
      emit?.({ kind: "run.started", at, runId: id, workflow, version, queue, key });
    }
    return answer.id;
  };
}

function moveWhole(data: Payload, from: PayloadPlace, to: PayloadPlace, payloads: Payloads): Payload | null {
  return payloads.move(data, from, to);
}

function unknownStep(runId: RunId, from: string, known: readonly string[]): PawlError {
  const shown = known.slice(0, mostKeysShown).map((key) => `"${key}"`);
  const more = known.length > mostKeysShown ? ` and ${known.length - mostKeysShown} more` : "";
  const has = known.length === 0 ? "It has asked for nothing yet." : `It has ${shown.join(", ")}${more}.`;
  const message = `Run ${runId} has nothing called "${from.slice(0, 300)}" to fork from. ${has}`;
  return new PawlError("INVALID_OPTION", message, { runId, from, known });
}

function assertFits(runId: RunId, events: readonly ForkedEvent[]): void {
  let bytes = 0;
  for (const { data } of events) bytes += 200 + (data?.json.length ?? 0) + (data?.notes?.length ?? 0);
  if (bytes <= mostBytes) return;
  const message = `Run ${runId} cannot be forked there: what it did before is larger than ${mostBytes} bytes.`;
  throw new PawlError("INVALID_PAYLOAD", message, { runId, bytes, mostBytes });
}

function keyConflict(key: string | null, runId: RunId): PawlError {
  const message = `The key "${key}" belongs to run ${runId}, which has another workflow, version or input.`;
  return new PawlError("KEY_CONFLICT", message, { key, runId });
}
