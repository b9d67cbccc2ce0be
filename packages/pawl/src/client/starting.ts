import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { invalidOption, listFault } from "../core/options.ts";
import { assertWorkflow, type WorkflowRef } from "../core/workflow-ref.ts";
import type { CreateAnswer, NewRun } from "../store/run-record.ts";
import type { Offer } from "../store/taker.ts";
import type { Connection, Place } from "./connection.ts";
import { completeRun, describeRun, type DescribedRun } from "./new-run.ts";
import {
  readStartItem,
  readStartManyOptions,
  readStartOptions,
  type StartItem,
  type StartManyOptions,
  type StartOptions,
} from "./start-options.ts";

export interface Starting {
  start(workflow: WorkflowRef, input: unknown, options?: StartOptions): Promise<RunId>;
  startMany(
    workflow: WorkflowRef,
    items: readonly StartItem<unknown>[],
    options?: StartManyOptions,
  ): Promise<readonly RunId[]>;
}

/** So many runs, or so many bytes of inputs, go to the store in one call, which is all or nothing. */
const runsPerChunk = 1_000;
const bytesPerChunk = 4_000_000;
/** So many chunks are under way at a time: the database works on one while this process writes the other. */
const chunksAtOnce = 2;
/** So many are described before the process gets to do something else. */
const runsPerPiece = 1_000;

export function createStarting(connection: Connection): Starting {
  const { storeClock, ids, payloads, emit } = connection;

  /** Made once: however often the call is repeated, it creates one run. */
  const complete = (described: DescribedRun): NewRun =>
    completeRun(described, ids.next(), storeClock.now(), payloads);

  const create = async (place: Place, runs: readonly NewRun[]): Promise<readonly RunId[]> => {
    const answers = await place.createRuns(runs);
    const conflict = answers.findIndex(({ kind }) => kind === "conflict");
    if (conflict >= 0) throw keyConflict(runs[conflict], answers[conflict]);
    return runs.map((run, index) => {
      const answer = answers[index];
      if (answer === undefined)
        throw new PawlError("INTERNAL", "The store did not answer for a new run. Please report this.");
      if (answer.kind === "created") tellStarted(run);
      return answer.id;
    });
  };

  /** So many under way at a time, each only when the one that many before it has been started. */
  const createChunks = async (
    place: Place,
    chunks: readonly (readonly NewRun[])[],
    atOnce: number,
  ): Promise<readonly RunId[]> => {
    const calls: Promise<readonly RunId[] | null>[] = [];
    const failures: unknown[] = [];
    const failed = (error: unknown): null => {
      failures.push(error);
      return null;
    };
    for (const [index, chunk] of chunks.entries()) {
      if (index >= atOnce) await calls[index - atOnce];
      if (failures.length > 0) break;
      calls.push(create(place, chunk).catch(failed));
    }
    const started = await Promise.all(calls);
    if (failures.length === 0) return started.flatMap((ids) => ids ?? []);
    const before = started.slice(0, started.indexOf(null)).flat().length;
    const [error] = failures;
    throw PawlError.is(error) ? withStarted(error, before) : error;
  };

  /** The worker begins it once everybody can know that it was started. */
  const createHeld = async (run: NewRun, offer: Offer): Promise<RunId> => {
    const create = () => connection.store.createHeld(run, offer.holder);
    const answer = await connection.call(create).catch((error: unknown) => {
      offer.giveUp();
      throw error;
    });
    if (answer.kind === "created") tellStarted(run);
    offer.settle(answer.held);
    if (answer.kind === "conflict") throw keyConflict(run, answer);
    return answer.id;
  };

  /** As `Promise.all` over a map, but never for long without a pause. */
  const inPieces = async <Item, Answer>(
    items: readonly Item[],
    act: (item: Item, index: number) => Answer | Promise<Answer>,
  ): Promise<readonly Answer[]> => {
    const answers: Answer[] = [];
    for (let from = 0; from < items.length; from += runsPerPiece) {
      if (from > 0) await connection.breathe();
      const piece = items.slice(from, from + runsPerPiece).map((item, index) => act(item, from + index));
      const isLate = piece.some((answer) => answer instanceof Promise);
      answers.push(...(isLate ? await Promise.all(piece) : (piece as readonly Answer[])));
    }
    return answers;
  };

  const describeItem = (
    workflow: WorkflowRef,
    common: Omit<StartManyOptions, "tx">,
    item: StartItem<unknown>,
    index: number,
  ): DescribedRun | Promise<DescribedRun> => {
    const { input, ...own } = readStartItem(item, index);
    const say = (error: unknown): never => {
      throw PawlError.is(error) ? ofItem(error, index) : error;
    };
    try {
      const described = describeRun(workflow, input, combine(common, own), payloads);
      if (!(described instanceof Promise)) return described;
      const late = described.catch(say);
      // Another item may be refused at once, and then nobody waits for this one.
      late.catch(() => {});
      return late;
    } catch (error) {
      return say(error);
    }
  };

  const tellStarted = ({ id: runId, workflow, version, queue, key }: NewRun): void => {
    const at = new Date(storeClock.now());
    emit?.({ kind: "run.started", at, runId, workflow, version, queue, key });
  };

  return {
    async start(workflow, input, given) {
      assertWorkflow("start", workflow);
      const options = readStartOptions(given);
      const place = connection.placeOf(options.tx);
      const described = await describeRun(workflow, input, options, payloads);
      await place.learn();
      const run = complete(described);
      // Nobody can begin what a transaction has not brought into the world yet.
      const offer = options.tx === undefined ? connection.offerFor(run) : null;
      if (offer !== null) return createHeld(run, offer);
      const [id] = await create(place, [run]);
      return id as RunId;
    },
    async startMany(workflow, items, given = {}) {
      assertWorkflow("startMany", workflow);
      const fault = listFault(items);
      if (fault !== null) throw invalidOption("startMany", "items", fault);
      const { tx, ...common } = readStartManyOptions(given);
      const place = connection.placeOf(tx);
      // All are looked at before the first is sent: what is wrong with one of them starts none.
      // A copy of the list, since the caller may use it again before this has come to its end.
      const described = await inPieces([...items], (item, index) =>
        describeItem(workflow, common, item, index),
      );
      await place.learn();
      const runs = await inPieces(described, complete);
      // A conflict must find the chunks after it not started, and a transaction takes one statement at a time.
      const atOnce = tx === undefined && runs.every(({ key }) => key === null) ? chunksAtOnce : 1;
      return createChunks(place, [...chunksOf(runs)], atOnce);
    },
  };
}

/** Two ways to say the same. */
const twins = [
  ["at", "delay"],
  ["deadline", "timeout"],
  ["expiresAt", "expiresIn"],
] as const;

/** What a run says of itself goes before what is said of all, in whichever way it says it. */
function combine(common: Omit<StartManyOptions, "tx">, own: StartOptions): StartOptions {
  if (isEmpty(own)) return common;
  if (isEmpty(common)) return own;
  const combined: Record<string, unknown> = { ...common, ...own };
  for (const [one, other] of twins) {
    if (own[one] !== undefined) delete combined[other];
    if (own[other] !== undefined) delete combined[one];
  }
  return combined;
}

function isEmpty(options: object): boolean {
  for (const _ in options) return false;
  return true;
}

function* chunksOf(runs: readonly NewRun[]): Generator<readonly NewRun[]> {
  let chunk: NewRun[] = [];
  let bytes = 0;
  for (const run of runs) {
    const size = run.input?.json.length ?? 0;
    if (chunk.length === runsPerChunk || (chunk.length > 0 && bytes + size > bytesPerChunk)) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(run);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}

/** The same error, which also says which item it is about. */
function ofItem({ code, message, details, cause }: PawlError, item: number): PawlError {
  return new PawlError(code, `Item ${item} of startMany: ${message}`, { ...details, item }, { cause });
}

/** The same error, which also says how many of the runs had been started when it happened. */
function withStarted(error: PawlError, started: number): PawlError {
  const message = started === 0 ? error.message : `${error.message} The first ${started} runs were started.`;
  return new PawlError(error.code, message, { ...error.details, started }, { cause: error.cause });
}

function keyConflict(run: NewRun | undefined, answer: CreateAnswer | undefined): PawlError {
  const difference = run?.mustBeNew === true ? "" : ", which has another workflow, version or input";
  return new PawlError("KEY_CONFLICT", `The key "${run?.key}" belongs to run ${answer?.id}${difference}.`, {
    key: run?.key,
    runId: answer?.id,
  });
}
