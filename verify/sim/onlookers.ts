import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { walk, type Program } from "../gen/program.ts";
import type { Answered, Asked, ClientPort } from "./client-port.ts";
import type { Rng } from "./rng.ts";

export interface OnlookersParts {
  readonly run: RunId;
  readonly program: Program;
  readonly updates: readonly string[];
  readonly rng: Rng;
  /** Nobody comes later than this. */
  readonly longestMs: number;
  readonly later: (ms: number, act: () => Promise<void>) => void;
  /** Asks until the answer is clear; nobody waits for that. */
  readonly ask: (asked: Asked, ask: (port: ClientPort) => Promise<Answered>) => void;
}

/** People who look at what a run publishes and streams, and send it updates, some of them twice. */
export function look({ run, program, updates, rng, longestMs, later, ask }: OnlookersParts): void {
  const drawMs = (): number => rng.next() * rng.pick([0.02, 0.3, 1]) * longestMs;
  const soon = (act: () => void): void => later(drawMs(), () => Promise.resolve(act()));

  for (const payload of updates) {
    const send = (): void =>
      ask({ op: "update", run, key: payload, value: null }, async (port) => ({
        value: await port.update(run, payload),
      }));
    soon(send);
    if (rng.chance(0.3)) soon(send);
  }

  const streams = new Set<string>();
  let publishes = false;
  for (const op of walk(program.ops, false)) {
    if (op.kind === "stream") streams.add(op.stream);
    if (op.kind === "publish") publishes = true;
  }
  for (const name of streams)
    soon(() =>
      ask({ op: "stream", run, key: name, value: null }, async (port) => ({
        value: await port.readStream(run, name),
      })),
    );
  for (let times = publishes ? 3 : 0; times > 0; times--)
    soon(() =>
      ask({ op: "published", run, key: null, value: null }, async (port) => ({
        value: await port.published(run),
      })),
    );
}
