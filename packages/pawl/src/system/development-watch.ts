import { AsyncLocalStorage } from "node:async_hooks";
import nodeCrypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { fileURLToPath } from "node:url";
import type { Watch, WatchedPlace } from "../core/watch.ts";

/** What is to be said about a workflow's code: once for each workflow and place. */
export type Warn = (message: string, fields: Readonly<Record<string, unknown>>) => void;

export interface DevelopmentWatch extends Watch {
  /** Puts the globals back. */
  stop(): void;
}

const advice = {
  "Date.now()": "ctx.now()",
  "new Date()": "new Date(ctx.now())",
  "Math.random()": "ctx.random()",
  "crypto.randomUUID()": "ctx.uuid()",
  setTimeout: "ctx.sleep()",
  setInterval: "a loop with ctx.sleep()",
} as const;
type Ambient = keyof typeof advice;

/** The folder of this library: what it does itself is no mistake of the user's. */
const ownFolder = fileURLToPath(new URL("..", import.meta.url));

/**
 * Warns of what makes a workflow's code take another course when it is replayed: clocks, chance, timers and awaits other
 * than the context's. While it lasts, the globals that it watches are wrapped: they do what they did.
 */
export function startDevelopmentWatch(warn: Warn): DevelopmentWatch {
  const places = new AsyncLocalStorage<WatchedPlace | null>();
  const said = new Set<string>();
  let isStopped = false;

  const say = ({ workflow, version, step }: WatchedPlace, at: string, problem: string): void => {
    const id = JSON.stringify([workflow, version, at, problem]);
    if (said.has(id)) return;
    said.add(id);
    const fields = { workflow, version, ...(step !== null && { step }), at };
    places.run(null, () => warn(`${problem} (workflow ${workflow}@${version}, ${at})`, fields));
  };

  const notice = (what: Ambient): void => {
    const place = isStopped ? null : (places.getStore() ?? null);
    if (place === null || place.step !== null) return;
    const at = callerOutside();
    if (at === null) return;
    const instead = advice[what];
    say(place, at, `${what} in a workflow is another at each replay: use ${instead}, or put it into a step.`);
  };

  const restore = wrapGlobals(notice);

  return {
    inside: (place, call) => places.run(place, call),
    outside: (call) => places.run(null, call),
    asked(what) {
      const place = places.getStore() ?? null;
      if (isStopped || place === null || place.step === null) return;
      const problem =
        `The ${what} was asked for inside the step "${place.step}", which is not replayed: ` +
        "ask for it in the workflow's own code.";
      say(place, frames()[0]?.text ?? "unknown place", problem);
    },
    strayed(place, after) {
      if (isStopped) return;
      const at = after === null ? "at its beginning" : `after ${after}`;
      const problem = "A workflow awaits something other than its context: put that into a step.";
      say(place, at, problem);
    },
    stop() {
      if (isStopped) return;
      isStopped = true;
      restore();
    },
  };
}

/** Wraps what code should not use. Answers how to put it back. */
function wrapGlobals(notice: (what: Ambient) => void): () => void {
  const called = <Call extends (...args: never[]) => unknown>(what: Ambient, original: Call): Call =>
    new Proxy(original, {
      apply(target, self, args: Parameters<Call>) {
        notice(what);
        return Reflect.apply(target, self, args);
      },
    });
  const RealDate = globalThis.Date;
  const date = new Proxy(RealDate, {
    construct(target, args, self) {
      if (args.length === 0) notice("new Date()");
      return Reflect.construct(target, args, self) as object;
    },
    apply() {
      notice("new Date()");
      return RealDate();
    },
  });
  const webCrypto = globalThis.crypto;
  const uuid = "crypto.randomUUID()";
  const restores = [
    replace(RealDate, "now", called("Date.now()", RealDate.now)),
    replace(globalThis, "Date", date),
    replace(Math, "random", called("Math.random()", Math.random)),
    replace(webCrypto, "randomUUID", called(uuid, webCrypto.randomUUID.bind(webCrypto))),
    replace(nodeCrypto, "randomUUID", called(uuid, nodeCrypto.randomUUID)),
    replace(globalThis, "setTimeout", called("setTimeout", globalThis.setTimeout)),
    replace(globalThis, "setInterval", called("setInterval", globalThis.setInterval)),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const restore of restores.toReversed()) restore();
    syncBuiltinESMExports();
  };
}

/** Puts something in a property's place. Whoever has replaced it since keeps theirs: ours then does nothing but call on. */
function replace<Owner extends object, Key extends keyof Owner>(
  owner: Owner,
  key: Key,
  value: Owner[Key],
): () => void {
  const original = Object.getOwnPropertyDescriptor(owner, key);
  Object.defineProperty(owner, key, {
    configurable: true,
    writable: true,
    enumerable: true,
    ...original,
    value,
  });
  return () => {
    if (owner[key] !== value) return;
    if (original === undefined) Reflect.deleteProperty(owner, key);
    else Object.defineProperty(owner, key, original);
  };
}

interface Frame {
  readonly text: string;
  readonly isOwn: boolean;
  readonly isForeign: boolean;
}

/** Where the code stands, the innermost first, without this file. */
function frames(): readonly Frame[] {
  const lines = (new Error("here").stack ?? "").split("\n").slice(1);
  const all = lines.map((line) => {
    const text = line.trim().replace(/^at /, "").replace("file://", "");
    return {
      text,
      isWatch: text.includes("development-watch"),
      isOwn: text.includes(ownFolder),
      isForeign: text.includes("node_modules") || text.includes("node:") || text.includes("<anonymous>"),
    };
  });
  return all.filter(({ isWatch }) => !isWatch).filter(({ isOwn }, index) => index === 0 || !isOwn);
}

/** Who called, unless that was the library itself, or somebody else's: a logger may well look at the clock. */
function callerOutside(): string | null {
  const [caller] = frames().filter(
    ({ text }) => !text.startsWith("Object.apply") && !text.startsWith("Object.construct"),
  );
  return caller === undefined || caller.isOwn || caller.isForeign ? null : caller.text;
}
