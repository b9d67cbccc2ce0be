import {
  completionTableSql,
  fromDrizzle,
  fromKnex,
  fromKysely,
  fromPostgresJs,
  fromPrisma,
  fromTypeOrm,
  installCompletionTable,
  withDrizzle,
  withKnex,
  withKysely,
  withPg,
  withPostgresJs,
  withPrisma,
  withTypeOrm,
  type Transactor,
} from "../../src/adapters/index.ts";
import {
  aesGcmCodec,
  createPawl,
  dag,
  machine,
  quorum,
  settled,
  PawlError,
  ref,
  RetryAfterError,
  toMermaid,
  workflow,
  type Pawl,
  type RunHandle,
} from "../../src/index.ts";

/** What a call may be made with, besides junk. */
export interface Ground {
  readonly pawl: Pawl;
  /** A run that has ended, and one that has not. */
  readonly ended: RunHandle;
  readonly live: RunHandle;
}

export type Entry = (ground: Ground, value: unknown) => unknown;

export const idle = workflow({ name: "idle", version: 1 }, async (_ctx, input: unknown) => input);

/** What the types would refuse. */
const never = (value: unknown): never => value as never;

const bytes = new Uint8Array(32);
const nobody = { workflow: "nobody's" };

/** Every public entry with one argument left open. */
export const entries: Readonly<Record<string, Entry>> = {
  "createPawl(…)": (_, value) => close(createPawl(never(value))),
  "workflow(…, f)": (_, value) => workflow(never(value), async () => {}),
  "workflow(options, …)": (_, value) => workflow({ name: "w", version: 1 }, never(value)),
  "dag(…)": (_, value) => dag(never(value), (g) => g.node("a", idle, 1)),
  "dag that returns": (_, value) => dag({ name: "g", version: 1 }, () => never(value)),
  "g.node(…)": (_, value) => dag({ name: "g", version: 1 }, (g) => g.node(never(value), idle, 1)),
  "g.node(name, …)": (_, value) => dag({ name: "g", version: 1 }, (g) => g.node("a", never(value), 1)),
  "g.node(name, task, …)": (_, value) => dag({ name: "g", version: 1 }, (g) => g.node("a", idle, value)),
  "g.each(name, …)": (_, value) =>
    dag({ name: "g", version: 1 }, (g) => g.each("a", never(value), idle, (item) => item)),
  "settled(…)": (_, value) => settled(never(value)),
  "quorum(…)": (_, value) =>
    dag({ name: "g", version: 1 }, (g) => {
      const first = g.node("a", idle, 1);
      return g.node("b", idle, first, { join: quorum(never(value)) });
    }),
  "machine(…)": (_, value) => machine(never(value)),
  "machine({ steps: … })": (_, value) => machine({ name: "m", version: 1, start: "a", steps: never(value) }),
  "machine({ steps: { a: … } })": (_, value) =>
    machine({ name: "m", version: 1, start: "a", steps: { a: never(value) } }),
  "toMermaid(…)": (_, value) => toMermaid(never(value)),
  "ref(…, 1)": (_, value) => ref(never(value), 1),
  "ref(name, …)": (_, value) => ref("w", never(value)),
  "ref(name, 1, …)": (_, value) => ref("w", 1, never(value)),
  "new RetryAfterError(…)": (_, value) => new RetryAfterError("later", never(value)),
  "PawlError.is(…)": (_, value) => PawlError.is(value),
  "PawlError.is(error, …)": (_, value) => PawlError.is(new PawlError("INTERNAL", "x"), never(value)),
  "aesGcmCodec(…)": (_, value) => aesGcmCodec(never(value)),
  "aesGcmCodec({ keys: [{ id, key: … }] })": (_, value) =>
    aesGcmCodec({ keys: [{ id: "a", key: never(value) }] }),
  "aesGcmCodec({ keys: [{ id: …, key }] })": (_, value) =>
    aesGcmCodec({ keys: [{ id: never(value), key: bytes }] }),
  "aesGcmCodec({ keys: [ … ] })": (_, value) => aesGcmCodec({ keys: [never(value)] }),
  "worker(…)": ({ pawl }, value) => pawl.worker(never(value)),
  "worker({ workflows: [ … ] })": ({ pawl }, value) => pawl.worker({ workflows: [never(value)] }),
  "worker.stop(…)": ({ pawl }, value) => pawl.worker({ workflows: [idle] }).stop(never(value)),
  "worker.runUntilIdle(…)": ({ pawl }, value) =>
    pawl.worker({ workflows: [idle], queues: ["empty"] }).runUntilIdle(never(value)),
  "migrate(…)": ({ pawl }, value) => pawl.migrate(never(value)),
  "close(…)": (_, value) => createPawl({ memory: true }).close(never(value)),
  "start(…)": ({ pawl }, value) => pawl.start(value as typeof idle, 1),
  "start(workflow, …)": ({ pawl }, value) => pawl.start(idle, value),
  "start(workflow, 1, …)": ({ pawl }, value) => pawl.start(idle, 1, never(value)),
  "startMany(…, items)": ({ pawl }, value) => pawl.startMany(value as typeof idle, [{ input: 1 }]),
  "startMany(workflow, …)": ({ pawl }, value) => pawl.startMany(idle, never(value)),
  "startMany(workflow, [ … ])": ({ pawl }, value) => pawl.startMany(idle, [{ input: 1 }, never(value)]),
  "startMany(workflow, [{ input: … }])": ({ pawl }, value) =>
    pawl.startMany(idle, [{ input: 1 }, { input: value }]),
  "startMany(workflow, items, …)": ({ pawl }, value) => pawl.startMany(idle, [{ input: 1 }], never(value)),
  "signalOrStart(…, options)": ({ pawl }, value) =>
    pawl.signalOrStart(value as typeof idle, { key: "one", signal: "word" }),
  "signalOrStart(workflow, …)": ({ pawl }, value) => pawl.signalOrStart(idle, never(value)),
  "handle(…)": ({ pawl }, value) => pawl.handle(never(value)),
  "handle(…).status()": ({ pawl }, value) => pawl.handle(never(value)).status(),
  "handle(…).result()": ({ pawl }, value) => pawl.handle(never(value)).result(),
  "handle(…).history()": ({ pawl }, value) => pawl.handle(never(value)).history(),
  "handle(…).attempts()": ({ pawl }, value) => pawl.handle(never(value)).attempts(),
  "handle(id, …)": ({ pawl, ended }, value) => pawl.handle(ended.id, never(value)).signal("word"),
  "handle(id, …).update()": ({ pawl, ended }, value) => pawl.handle(ended.id, never(value)).update("word"),
  "handle(id, …).published()": ({ pawl, ended }, value) =>
    pawl.handle(ended.id, never(value)).published("word"),
  "get(…)": ({ pawl }, value) => pawl.get(never(value)),
  "list(…)": ({ pawl }, value) => pawl.list(never(value)),
  "listAll(…)": ({ pawl }, value) => pawl.listAll(never(value)).next(),
  "deadLetters(…)": ({ pawl }, value) => pawl.deadLetters(never(value)),
  "patches(…)": ({ pawl }, value) => pawl.patches(never(value)),
  "signal(…, name)": ({ pawl }, value) => pawl.signal(never(value), "word"),
  "signal(id, …)": ({ pawl, live }, value) => pawl.signal(live.id, never(value)),
  "signal(id, name, …)": ({ pawl, live }, value) => pawl.signal(live.id, "word", value),
  "signal(id, name, 1, …)": ({ pawl, live }, value) => pawl.signal(live.id, "word", 1, never(value)),
  "published(…)": ({ pawl }, value) => pawl.published(never(value)),
  "published(id, …)": ({ pawl, live }, value) => pawl.published(live.id, never(value)),
  "update(…, name)": ({ pawl }, value) => pawl.update(never(value), "word"),
  "update(id, …)": ({ pawl, ended }, value) => pawl.update(ended.id, never(value)),
  "update(id, name, …)": ({ pawl, ended }, value) => pawl.update(ended.id, "word", value),
  "update(id, name, 1, …)": ({ pawl, ended }, value) => pawl.update(ended.id, "word", 1, never(value)),
  "stream(…, name)": ({ pawl }, value) => pawl.stream(never(value), "word").next(),
  "stream(id, …)": ({ pawl, ended }, value) => pawl.stream(ended.id, never(value)).next(),
  "stream(id, name, …)": ({ pawl, ended }, value) => pawl.stream(ended.id, "word", never(value)).next(),
  "cancel(…)": ({ pawl }, value) => pawl.cancel(never(value)),
  "cancel(id, …)": ({ pawl, ended }, value) => pawl.cancel(ended.id, never(value)),
  "terminate(…)": ({ pawl }, value) => pawl.terminate(never(value)),
  "terminate(id, …)": ({ pawl, ended }, value) => pawl.terminate(ended.id, never(value)),
  "pause(…)": ({ pawl }, value) => pawl.pause(never(value)),
  "resume(…)": ({ pawl }, value) => pawl.resume(never(value)),
  "reschedule(…, options)": ({ pawl }, value) => pawl.reschedule(never(value), { priority: 1 }),
  "reschedule(id, …)": ({ pawl, live }, value) => pawl.reschedule(live.id, never(value)),
  "retry(…)": ({ pawl }, value) => pawl.retry(never(value)),
  "retry(id, …)": ({ pawl, live }, value) => pawl.retry(live.id, never(value)),
  "redrive(…)": ({ pawl }, value) => pawl.redrive(never(value)),
  "retryAll(…)": ({ pawl }, value) => pawl.retryAll(never(value)),
  "retryAll(filter, …)": ({ pawl }, value) => pawl.retryAll(nobody, never(value)),
  "redriveAll(…)": ({ pawl }, value) => pawl.redriveAll(never(value)),
  "fork(…, options)": ({ pawl }, value) => pawl.fork(never(value), { from: "step" }),
  "fork(id, …)": ({ pawl, live }, value) => pawl.fork(live.id, never(value)),
  "cancelAll(filter, …)": ({ pawl }, value) => pawl.cancelAll(nobody, never(value)),
  "run.result(…)": ({ ended }, value) => ended.result(never(value)),
  "run.signal(…)": ({ live }, value) => live.signal(never(value)),
  "run.signal(name, …)": ({ live }, value) => live.signal("word", value),
  "run.signal(name, 1, …)": ({ live }, value) => live.signal("word", 1, never(value)),
  "run.update(…)": ({ ended }, value) => ended.update(never(value)),
  "run.update(name, …)": ({ ended }, value) => ended.update("word", value),
  "run.published(…)": ({ live }, value) => live.published(never(value)),
  "run.stream(…)": ({ ended }, value) => ended.stream(never(value)).next(),
  "run.cancel(…)": ({ ended }, value) => ended.cancel(never(value)),
  "run.terminate(…)": ({ ended }, value) => ended.terminate(never(value)),
  "run.reschedule(…)": ({ live }, value) => live.reschedule(never(value)),
  "run.retry(…)": ({ live }, value) => live.retry(never(value)),
  "run.fork(…)": ({ live }, value) => live.fork(never(value)),
  "start with a tx": ({ pawl }, value) => pawl.start(idle, 1, { tx: never(value) }),
  "signal with a tx": ({ live }, value) => live.signal("word", 1, { tx: never(value) }),
  "cancel with a tx": ({ ended }, value) => ended.cancel({ tx: never(value) }),
  "fromDrizzle(…)": (_, value) => fromDrizzle(never(value)),
  "fromKnex(…)": (_, value) => fromKnex(never(value)),
  "fromKysely(…)": (_, value) => fromKysely(never(value)),
  "fromPostgresJs(…)": (_, value) => fromPostgresJs(never(value)),
  "fromPrisma(…)": (_, value) => fromPrisma(never(value)),
  "fromTypeOrm(…)": (_, value) => fromTypeOrm(never(value)),
  "withDrizzle(…)": (_, value) => withDrizzle(never(value)),
  "withKnex(…)": (_, value) => withKnex(never(value)),
  "withKysely(…)": (_, value) => withKysely(never(value)),
  "withPg(…)": (_, value) => withPg(never(value)),
  "withPostgresJs(…)": (_, value) => withPostgresJs(never(value)),
  "withPrisma(…)": (_, value) => withPrisma(never(value)),
  "withTypeOrm(…)": (_, value) => withTypeOrm(never(value)),
  "withDrizzle(db, …)": (_, value) => withDrizzle({ transaction: ignore } as never, never(value)),
  "withKnex(knex, …)": (_, value) => withKnex({ transaction: ignore } as never, never(value)),
  "withKysely(db, …)": (_, value) => withKysely({ transaction: ignore } as never, never(value)),
  "withPg(pool, …)": (_, value) => withPg({ connect: ignore, totalCount: 0 } as never, never(value)),
  "withPostgresJs(sql, …)": (_, value) => withPostgresJs({ begin: ignore } as never, never(value)),
  "withPrisma(prisma, …)": (_, value) => withPrisma({ $transaction: ignore } as never, never(value)),
  "withTypeOrm(source, …)": (_, value) => withTypeOrm({ transaction: ignore } as never, never(value)),
  "completionTableSql(…)": (_, value) => completionTableSql(never(value)),
  "installCompletionTable(…)": (_, value) => installCompletionTable(never(value)),
  "installCompletionTable(transactor, …)": (_, value) => installCompletionTable(anyDatabase, never(value)),
  "pauseAll(…)": ({ pawl }, value) => pawl.pauseAll(never(value)),
  "resumeAll(…)": ({ pawl }, value) => pawl.resumeAll(never(value)),
  // Last: without a filter it ends all runs.
  "cancelAll(…)": ({ pawl }, value) => pawl.cancelAll(never(value)),
};

/** Takes nothing. */
export const withoutArguments: readonly string[] = ["counts", "backlog", "workers", "health"];

interface OptionsEntry {
  readonly names: string;
  /** Takes a whole workflow, of which it reads these. */
  readonly takesMore?: true;
  readonly call: Entry;
}

const retryNames = "attempts backoff initial max factor delays jitter";
const sharedNames = "queue priority at delay deadline timeout expiresAt expiresIn tags retry onConflict";
const filterNames = "workflow queue key tags errorCode createdAfter createdBefore";
const transactorNames = "foreign schema";

/** Every option of every public entry. */
export const optionsOf: Readonly<Record<string, OptionsEntry>> = {
  createPawl: {
    names:
      "url pool memory schema listenUrl listen connections autoMigrate maxPayloadBytes codec log development onEvent",
    call: (_, options) => close(createPawl({ memory: true, ...(options as object) })),
  },
  workflow: {
    names: "name version input signals published updates retry timeout queue crashLimit onCrash",
    call: (_, options) => workflow({ name: "w", version: 1, ...(options as object) }, async () => {}),
  },
  dag: {
    names: "name version input onError retry timeout queue crashLimit onCrash",
    call: (_, options) =>
      dag(never({ name: "g", version: 1, ...(options as object) }), (g) => g.node("a", idle, 1)),
  },
  "a graph's node": {
    names: "queue priority retry timeout expiresIn tags join after when optional",
    call: (_, options) =>
      dag({ name: "g", version: 1 }, (g) => g.node("a", idle, 1, never({ ...(options as object) }))),
  },
  machine: {
    names: "name version start input state output signals retry timeout queue crashLimit onCrash steps",
    call: (_, options) =>
      machine(
        never({
          name: "m",
          version: 1,
          start: "a",
          steps: { a: { run() {}, next: "a" } },
          ...(options as object),
        }),
      ),
  },
  "a machine's step": {
    names: "run next undo retry timeout undoRetry onCrash limit leadsTo",
    call: (_, options) =>
      machine(
        never({
          name: "m",
          version: 1,
          start: "a",
          steps: { a: { run() {}, next: "a", ...(options as object) } },
        }),
      ),
  },
  "workflow's retry": {
    names: `${retryNames} retryIf`,
    call: (_, retry) => workflow({ name: "w", version: 1, retry: never(retry) }, async () => {}),
  },
  "workflow's update": {
    names: "input output",
    call: (_, update) => workflow({ name: "w", version: 1, updates: { ask: never(update) } }, async () => {}),
  },
  ref: { names: "queue timeout", call: (_, options) => ref("w", 1, never(options)) },
  RetryAfterError: {
    names: "after cause",
    call: (_, options) => new RetryAfterError("later", { after: 1, ...(options as object) }),
  },
  aesGcmCodec: {
    names: "keys digestKey",
    call: (_, options) => aesGcmCodec({ keys: [{ id: "a", key: bytes }], ...(options as object) }),
  },
  "a key of aesGcmCodec": {
    names: "id key",
    call: (_, key) => aesGcmCodec({ keys: [{ id: "a", key: bytes, ...(key as object) }] }),
  },
  worker: {
    names: "workflows queues concurrency stickyRuns lease heartbeat pollInterval sampleInterval",
    call: ({ pawl }, options) => pawl.worker({ workflows: [idle], ...(options as object) }),
  },
  stop: {
    names: "timeout",
    call: ({ pawl }, options) => pawl.worker({ workflows: [idle] }).stop(never(options)),
  },
  close: { names: "timeout", call: (_, options) => createPawl({ memory: true }).close(never(options)) },
  runUntilIdle: {
    names: "timeout linger",
    call: ({ pawl }, options) =>
      pawl.worker({ workflows: [idle], queues: ["empty"] }).runUntilIdle(never(options)),
  },
  migrate: {
    names: "verifyOnly grantTo",
    call: ({ pawl }, options) => pawl.migrate(never(options)),
  },
  start: {
    names: `${sharedNames} key tx`,
    call: ({ pawl }, options) => pawl.start(idle, 1, never(options)),
  },
  "start's retry": {
    names: retryNames,
    call: ({ pawl }, retry) => pawl.start(idle, 1, { retry: never(retry) }),
  },
  startMany: {
    names: `${sharedNames} tx`,
    call: ({ pawl }, options) => pawl.startMany(idle, [{ key: "first" }], never(options)),
  },
  "startMany's item 1": {
    names: `${sharedNames} key input`,
    call: ({ pawl }, item) => pawl.startMany(idle, [{}, never(item)]),
  },
  signalOrStart: {
    names: `${sharedNames.replace(" onConflict", "")} key tx signal payload idempotencyKey input`,
    call: ({ pawl }, options) =>
      pawl.signalOrStart(idle, { key: "one", signal: "word", ...(options as object) }),
  },
  list: {
    names: `status ${filterNames} before limit`,
    call: ({ pawl }, filter) => pawl.list(never(filter)),
  },
  listAll: {
    names: `status ${filterNames} before limit`,
    call: ({ pawl }, filter) => pawl.listAll(never(filter)).next(),
  },
  deadLetters: {
    names: `${filterNames} before limit`,
    call: ({ pawl }, filter) => pawl.deadLetters(never(filter)),
  },
  patches: {
    names: "name version",
    takesMore: true,
    call: ({ pawl }, given) => pawl.patches({ name: "w", version: 1, ...(given as object) }),
  },
  signal: {
    names: "idempotencyKey tx",
    call: ({ live }, options) => live.signal("word", 1, never(options)),
  },
  update: {
    names: "timeout idempotencyKey",
    call: ({ ended }, options) => ended.update("word", 1, never(options)),
  },
  stream: {
    names: "from signal",
    call: ({ ended }, options) => ended.stream("word", never(options)).next(),
  },
  result: { names: "signal", call: ({ ended }, options) => ended.result(never(options)) },
  cancel: { names: "reason tx", call: ({ ended }, options) => ended.cancel(never(options)) },
  reschedule: {
    names: "priority at delay",
    call: ({ live }, options) => live.reschedule(never(options)),
  },
  retry: { names: "from", call: ({ live }, options) => live.retry(never(options)) },
  retryAll: {
    names: `status ${filterNames} children limit`,
    call: ({ pawl }, filter) => pawl.retryAll({ ...nobody, ...(filter as object) }),
  },
  "retryAll's second": {
    names: "from",
    call: ({ pawl }, options) => pawl.retryAll(nobody, never(options)),
  },
  fork: {
    names: "from input key tags queue",
    call: ({ live }, options) => live.fork({ from: "step", ...(options as object) }),
  },
  cancelAll: {
    names: `status ${filterNames} limit`,
    call: ({ pawl }, filter) => pawl.cancelAll({ ...nobody, ...(filter as object) }),
  },
  "cancelAll's second": {
    names: "reason",
    call: ({ pawl }, options) => pawl.cancelAll(nobody, never(options)),
  },
  pauseAll: {
    names: `status ${filterNames} limit`,
    call: ({ pawl }, filter) => pawl.pauseAll({ ...nobody, ...(filter as object) }),
  },
  resumeAll: {
    names: `status ${filterNames} limit`,
    call: ({ pawl }, filter) => pawl.resumeAll({ ...nobody, ...(filter as object) }),
  },
  withDrizzle: {
    names: transactorNames,
    call: (_, options) => withDrizzle({ transaction: ignore } as never, never(options)),
  },
  withPg: {
    names: transactorNames,
    call: (_, options) => withPg({ connect: ignore, totalCount: 0 } as never, never(options)),
  },
  withPrisma: {
    names: `${transactorNames} timeout`,
    call: (_, options) => withPrisma({ $transaction: ignore } as never, never(options)),
  },
  completionTableSql: { names: "schema", call: (_, options) => completionTableSql(never(options)) },
};

function ignore(): void {}

/** Whose transactions take whatever they are told. */
const anyDatabase: Transactor<null> = {
  isForeign: true,
  checksCommit: false,
  completions: { takeOver: async () => ({ state: "open" }), complete: async () => true },
  begin: (work) => work(null, { query: async () => ({ rows: [] }) }),
};

/** Whatever was made must be let go. */
function close(made: Pawl): Promise<void> {
  return made.close();
}
