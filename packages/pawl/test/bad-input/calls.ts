import { createPawl, ref, RetryAfterError, workflow, type Pawl, type RunHandle } from "../../src/index.ts";
import { junk, type Junk } from "./junk.ts";

/** What a call may be made with, besides junk. */
export interface Ground {
  readonly pawl: Pawl;
  /** A run that has ended, and one that has not. */
  readonly ended: RunHandle;
  readonly live: RunHandle;
}

export interface BadCall {
  readonly label: string;
  readonly call: (ground: Ground) => unknown;
}

type Entry = (ground: Ground, value: unknown) => unknown;

export const idle = workflow({ name: "idle", version: 1 }, async (_ctx, input: unknown) => input);

/** What the types would refuse. */
const never = (value: unknown): never => value as never;

/** Every public entry with one argument left open. */
const argumentsOf: Readonly<Record<string, Entry>> = {
  "createPawl(…)": (_, value) => close(createPawl(never(value))),
  "workflow(…, f)": (_, value) => workflow(never(value), async () => {}),
  "workflow(options, …)": (_, value) => workflow({ name: "w", version: 1 }, never(value)),
  "ref(…, 1)": (_, value) => ref(never(value), 1),
  "ref(name, …)": (_, value) => ref("w", never(value)),
  "ref(name, 1, …)": (_, value) => ref("w", 1, never(value)),
  "new RetryAfterError(…)": (_, value) => new RetryAfterError("later", never(value)),
  "worker(…)": ({ pawl }, value) => pawl.worker(never(value)),
  "worker.stop(…)": ({ pawl }, value) => pawl.worker({ workflows: [idle] }).stop(never(value)),
  "migrate(…)": ({ pawl }, value) => pawl.migrate(never(value)),
  "start(…)": ({ pawl }, value) => pawl.start(value as typeof idle, 1),
  "start(workflow, …)": ({ pawl }, value) => pawl.start(idle, value),
  "start(workflow, 1, …)": ({ pawl }, value) => pawl.start(idle, 1, never(value)),
  "handle(…)": ({ pawl }, value) => pawl.handle(never(value)),
  "handle(…).status()": ({ pawl }, value) => pawl.handle(never(value)).status(),
  "handle(…).result()": ({ pawl }, value) => pawl.handle(never(value)).result(),
  "handle(…).history()": ({ pawl }, value) => pawl.handle(never(value)).history(),
  "handle(id, …)": ({ pawl, ended }, value) => pawl.handle(ended.id, never(value)).signal("word"),
  "get(…)": ({ pawl }, value) => pawl.get(never(value)),
  "list(…)": ({ pawl }, value) => pawl.list(never(value)),
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
  "pause(…)": ({ pawl }, value) => pawl.pause(never(value)),
  "resume(…)": ({ pawl }, value) => pawl.resume(never(value)),
  "run.result(…)": ({ ended }, value) => ended.result(never(value)),
  "run.signal(…)": ({ live }, value) => live.signal(never(value)),
  "run.signal(name, …)": ({ live }, value) => live.signal("word", value),
  "run.signal(name, 1, …)": ({ live }, value) => live.signal("word", 1, never(value)),
  "run.cancel(…)": ({ ended }, value) => ended.cancel(never(value)),
};

/** Every option of every public entry. */
const optionsOf: Readonly<Record<string, { readonly names: string; readonly call: Entry }>> = {
  createPawl: {
    names: "url pool memory schema listenUrl listen connections autoMigrate log unknown",
    call: (_, options) => close(createPawl({ memory: true, ...(options as object) })),
  },
  workflow: {
    names: "name version input signals published updates retry timeout queue crashLimit onCrash unknown",
    call: (_, options) => workflow({ name: "w", version: 1, ...(options as object) }, async () => {}),
  },
  "workflow's retry": {
    names: "attempts backoff initial max factor delays jitter retryIf unknown",
    call: (_, retry) => workflow({ name: "w", version: 1, retry: never(retry) }, async () => {}),
  },
  ref: { names: "queue timeout unknown", call: (_, options) => ref("w", 1, never(options)) },
  worker: {
    names: "workflows queues concurrency lease heartbeat pollInterval unknown",
    call: ({ pawl }, options) => pawl.worker({ workflows: [idle], ...(options as object) }),
  },
  stop: {
    names: "timeout unknown",
    call: ({ pawl }, options) => pawl.worker({ workflows: [idle] }).stop(never(options)),
  },
  migrate: {
    names: "verifyOnly grantTo unknown",
    call: ({ pawl }, options) => pawl.migrate(never(options)),
  },
  start: {
    names: "key onConflict queue priority at delay timeout expiresIn retry unknown",
    call: ({ pawl }, options) => pawl.start(idle, 1, never(options)),
  },
  "start's retry": {
    names: "attempts backoff initial max factor delays jitter retryIf unknown",
    call: ({ pawl }, retry) => pawl.start(idle, 1, { retry: never(retry) }),
  },
  list: {
    names: "status workflow queue before limit unknown",
    call: ({ pawl }, filter) => pawl.list(never(filter)),
  },
  signal: {
    names: "idempotencyKey unknown",
    call: ({ live }, options) => live.signal("word", 1, never(options)),
  },
  update: {
    names: "timeout idempotencyKey unknown",
    call: ({ ended }, options) => ended.update("word", 1, never(options)),
  },
  stream: {
    names: "from signal unknown",
    call: ({ ended }, options) => ended.stream("word", never(options)).next(),
  },
  result: { names: "signal unknown", call: ({ ended }, options) => ended.result(never(options)) },
};

/** Whatever was made must be let go. */
function close(made: Pawl): Promise<void> {
  return made.close();
}

function bad(label: string, value: Junk, call: Entry): BadCall {
  return { label: `${label} with ${value.label}`, call: (ground) => call(ground, value.make()) };
}

/** Each argument and each option of each entry, with each piece of junk. */
export const badCalls: readonly BadCall[] = [
  ...Object.entries(argumentsOf).flatMap(([label, call]) => junk.map((value) => bad(label, value, call))),
  ...Object.entries(optionsOf).flatMap(([entry, { names, call }]) =>
    names
      .split(" ")
      .flatMap((name) =>
        junk.map((value) =>
          bad(`${entry}({ ${name}: … })`, value, (ground, made) => call(ground, { [name]: made })),
        ),
      ),
  ),
];
