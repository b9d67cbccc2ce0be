import { PawlError } from "../core/error.ts";
import type { RunId } from "../core/ids.ts";
import { invalidOption, listFault } from "../core/options.ts";
import { assertWorkflow, type WorkflowRef } from "../core/workflow-ref.ts";
import type { CreateAnswer, NewRun } from "../store/run-record.ts";
import type { Connection, Place } from "./connection.ts";
import { describeRun, sealRun, timeRun } from "./new-run.ts";
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
/** So many are described before the process gets to do something else. */
const runsPerPiece = 1_000;

export function createStarting(connection: Connection): Starting {
  const { storeClock, ids, payloads, emit } = connection;

  /** Made once: however often the call is repeated, it creates one run. */
  const complete = (
    described: Awaited<ReturnType<typeof describeRun>>,
    workflow: WorkflowRef,
    options: StartOptions,
  ): NewRun => sealRun(timeRun(described, ids.next(), storeClock.now(), workflow, options), payloads);

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

  /** As `Promise.all` over a map, but never for long without a pause. */
  const inPieces = async <Item, Answer>(
    items: readonly Item[],
    act: (item: Item, index: number) => Answer | Promise<Answer>,
  ): Promise<readonly Answer[]> => {
    const answers: Answer[] = [];
    for (let from = 0; from < items.length; from += runsPerPiece) {
      if (from > 0) await connection.breathe();
      const piece = items.slice(from, from + runsPerPiece);
      answers.push(...(await Promise.all(piece.map((item, index) => act(item, from + index)))));
    }
    return answers;
  };

  const tellStarted = ({ id: runId, workflow, version, queue, key }: NewRun): void => {
    const at = new Date(storeClock.now());
    emit?.({ kind: "run.started", at, runId, workflow, version, queue, key });
  };

  return {
    async start(workflow, input, given = {}) {
      assertWorkflow("start", workflow);
      const options = readStartOptions(given);
      const place = connection.placeOf(options.tx);
      const described = await describeRun(workflow, input, options, payloads);
      await place.learn();
      const [id] = await create(place, [complete(described, workflow, options)]);
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
      const described = await inPieces([...items], async (item, index) => {
        const { input, ...own } = readStartItem(item, index);
        const options = combine(common, own);
        const run = await describeRun(workflow, input, options, payloads).catch((error: unknown) => {
          throw PawlError.is(error) ? ofItem(error, index) : error;
        });
        return { options, run };
      });
      await place.learn();
      const runs = await inPieces(described, ({ run, options }) => complete(run, workflow, options));
      const started: RunId[] = [];
      for (const chunk of chunksOf(runs)) {
        try {
          started.push(...(await create(place, chunk)));
        } catch (error) {
          throw PawlError.is(error) ? withStarted(error, started.length) : error;
        }
      }
      return started;
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
  const combined: Record<string, unknown> = { ...common, ...own };
  for (const [one, other] of twins) {
    if (own[one] !== undefined) delete combined[other];
    if (own[other] !== undefined) delete combined[one];
  }
  return combined;
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
