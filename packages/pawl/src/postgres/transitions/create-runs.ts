import { msOf } from "../../core/ids.ts";
import { firstEpoch, type ClaimedRun, type CreateHeldAnswer, type Holder } from "../../store/lease.ts";
import type { CreateAnswer, NewRun } from "../../store/run-record.ts";
import { bareColumn, column, commonColumn, sizeOfPayload, sparseColumn } from "../columns.ts";
import type { Row } from "../database.ts";
import { transition } from "../transition.ts";

/** See migrations/0002_start_and_claim.sql. */
export const createRuns = transition(
  "create_runs",
  `select run_id, outcome, owner_id, held_ms, told, server
     from {schema}.create_runs_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
);

/** See migrations/0017_one_run.sql. */
export const createHeldRun = transition(
  "create_held_run",
  "select held_ms, server from {schema}.create_held_run_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
);

export interface CreatedRow extends Row {
  /** Null: all of them, and it says since when they are held. */
  readonly run_id: string | null;
  readonly outcome: CreateAnswer["kind"];
  readonly owner_id: string;
  /** Since when it is held; null: it is not, or another row says so. */
  readonly held_ms: number | null;
  /** Whether messages have come in since then. */
  readonly told: boolean | null;
  readonly server: number | null;
}

/** `isWhole`: all of them or none; otherwise each is a call of its own. `holder`: holds them from their start. */
export function createRunsValues(
  shard: number,
  runs: readonly NewRun[],
  isWhole: boolean,
  holder: Holder | null,
): readonly unknown[] {
  const { workerId = null, crashLimit = null, leaseMs = null } = holder ?? {};
  if (runs.every(isPlain))
    return [
      shard,
      null,
      false,
      isWhole,
      workerId,
      crashLimit,
      leaseMs,
      ...plainValues(runs),
      isPackable(runs),
    ];
  const isKeyed = runs.some((run) => run.key !== null);
  return [shard, runsJson(runs), isKeyed, isWhole, workerId, crashLimit, leaseMs, ...noPlainValues];
}

/** Has nothing but what all runs have. */
export function isPlain(run: NewRun): boolean {
  return (
    run.key === null &&
    run.parent === null &&
    run.startAt === null &&
    run.expiresAt === null &&
    run.deadlineAt === null &&
    run.retry === null &&
    run.forkedFrom === null &&
    run.tags.length === 0 &&
    !run.isRaw &&
    !run.isDetached
  );
}

function plainValues(runs: readonly NewRun[]): readonly unknown[] {
  return [
    bareColumn(runs, ({ id }) => id),
    column(oneForAll(runs, "workflow"), ({ workflow }) => workflow),
    commonColumn(runs, ({ version }) => version),
    column(oneForAll(runs, "queue"), ({ queue }) => queue),
    commonColumn(runs, ({ priority }) => priority),
    sparseColumn(runs, ({ input }) => input?.json),
    sparseColumn(runs, ({ input }) => input?.notes),
  ];
}

/** The first of them where all have the same: it is said once. */
function oneForAll(runs: readonly NewRun[], name: "workflow" | "queue"): readonly NewRun[] {
  const value = runs[0]?.[name];
  return runs.every((run) => run[name] === value) ? runs.slice(0, 1) : runs;
}

const noPlainValues = Array<null>(8).fill(null);

/** How far apart the ids of one pack may have been made: whoever lists packs by their last run relies on it. */
const longestPackMs = 1_000;

/** Whether they can share rows until they are claimed: they are of one lane, and in the order of their ids. */
function isPackable(runs: readonly NewRun[]): boolean {
  const [first] = runs;
  const last = runs.at(-1);
  if (first === undefined || last === undefined || runs.length < 2) return false;
  let before = "";
  for (const { id, workflow, version, queue, priority } of runs) {
    if (id <= before || workflow !== first.workflow || version !== first.version) return false;
    if (queue !== first.queue || priority !== first.priority) return false;
    before = id;
  }
  return msOf(last.id) - msOf(first.id) <= longestPackMs;
}

/** Runs as the functions of the schema read them. */
export function runsJson(runs: readonly NewRun[]): string {
  return JSON.stringify(
    runs.map((run) => ({
      id: run.id,
      workflow: run.workflow,
      version: run.version,
      queue: run.queue,
      priority: run.priority,
      input: run.input?.json,
      notes: run.input?.notes ?? undefined,
      raw: run.isRaw ? true : undefined,
      key: run.key ?? undefined,
      must_be_new: run.mustBeNew ? true : undefined,
      tags: run.tags.length === 0 ? undefined : run.tags,
      retry: run.retry ?? undefined,
      start_ms: run.startAt ?? undefined,
      expires_ms: run.expiresAt ?? undefined,
      deadline_ms: run.deadlineAt ?? undefined,
      parent_id: run.parent?.id,
      parent_request: run.parent?.request,
      detached: run.isDetached ? true : undefined,
      forked_from: run.forkedFrom ?? undefined,
    })),
  );
}

export function decodeCreated(runs: readonly NewRun[], rows: readonly CreatedRow[]): readonly CreateAnswer[] {
  const byId = new Map(rows.map((row) => [row.run_id, row]));
  return runs.map((run) => {
    const row = byId.get(run.id);
    return row === undefined ? { kind: "created", id: run.id } : { kind: row.outcome, id: row.owner_id };
  });
}

/** A run that somebody would hold from its start. */
export interface HeldCreation {
  readonly run: NewRun;
  readonly holder: Holder;
}

export function decodeCreatedHeld(
  creations: readonly HeldCreation[],
  rows: readonly CreatedRow[],
): readonly CreateHeldAnswer[] {
  const runs = creations.map(({ run }) => run);
  const [first] = rows;
  if (first?.run_id === null)
    return runs.map((run) => ({ kind: "created", id: run.id, held: heldFromStart(run, first) }));
  const heldRows = new Map(rows.flatMap((row) => (row.held_ms === null ? [] : [[row.run_id, row]])));
  return decodeCreated(runs, rows).map((answer, index) => {
    const run = runs[index];
    // Not by the answer's id, which may be that of another run of this call that has the key.
    const row = heldRows.get(run?.id ?? "");
    return { ...answer, held: run === undefined || row === undefined ? null : heldFromStart(run, row) };
  });
}

/** Of a plain run. */
export function createHeldRunValues(shard: number, { run, holder }: HeldCreation): readonly unknown[] {
  const { id, workflow, version, queue, priority, input } = run;
  const { workerId, crashLimit, leaseMs } = holder;
  const payload = [input?.json ?? null, input?.notes ?? null];
  return [shard, workerId, crashLimit, leaseMs, id, workflow, version, queue, priority, ...payload];
}

interface HeldRow extends Row {
  readonly held_ms: number;
  readonly server: number;
}

export function decodeCreatedHeldRun({ run }: HeldCreation, row: HeldRow): CreateHeldAnswer {
  return { kind: "created", id: run.id, held: heldFromStart(run, { ...row, told: false }) };
}

/** As a claim would have answered it. */
function heldFromStart(
  run: NewRun,
  { held_ms, told, server }: Pick<CreatedRow, "held_ms" | "told" | "server">,
): ClaimedRun {
  const since = held_ms ?? 0;
  return {
    runId: run.id,
    epoch: firstEpoch,
    workflow: run.workflow,
    version: run.version,
    queue: run.queue,
    key: run.key,
    parentId: run.parent?.id ?? null,
    rootId: run.id,
    depth: 0,
    input: run.input,
    isInputLeftOut: false,
    isRaw: run.isRaw,
    tags: run.tags,
    retry: run.retry,
    lastSeq: 0,
    attempt: 1,
    failures: 0,
    suspicion: 0,
    told: told === true,
    createdAt: since,
    deadlineAt: run.deadlineAt,
    claimedAt: since,
    mark: { priority: run.priority, readyAt: since, runId: run.id },
    server: server ?? undefined,
  };
}

export function sizeOfRun(run: NewRun): number {
  return 200 + sizeOfPayload(run.input);
}
