import { PawlError } from "../../packages/pawl/src/core/error.ts";
import type { NewMessage } from "../../packages/pawl/src/store/message.ts";
import type { RunFilter, RunRecord } from "../../packages/pawl/src/store/run-record.ts";
import type { Store } from "../../packages/pawl/src/store/store.ts";
import type { StoreHarness } from "../../packages/pawl/test/conformance/harness.ts";

type Transition = Exclude<keyof Store, "subscribe">;

/** One thing that happens to a store: calls of one kind, made at once, or what the port does not offer. */
export type Operation =
  | {
      readonly [Kind in Transition]: {
        readonly kind: Kind;
        /** Each with its arguments. More than one are merged by group commit. */
        readonly calls: readonly Parameters<Store[Kind]>[];
      };
    }[Transition]
  | { readonly kind: "insertMessage"; readonly message: NewMessage }
  | { readonly kind: "setQueuePaused"; readonly queue: string; readonly paused: boolean }
  | { readonly kind: "advance"; readonly ms: number };

/** An answer of each call, or the code of the error it was rejected with. */
export async function apply(harness: StoreHarness, operation: Operation): Promise<readonly unknown[]> {
  if (operation.kind === "insertMessage") {
    await harness.insertMessage(operation.message);
    return [];
  }
  if (operation.kind === "setQueuePaused") {
    await harness.setQueuePaused(operation.queue, operation.paused);
    return [];
  }
  if (operation.kind === "advance") {
    await harness.clock.advance(operation.ms);
    return [];
  }
  const { store } = harness;
  if (operation.kind === "listRuns")
    return Promise.all(operation.calls.map(([filter]) => listAll(store, filter).then(plain, codeOf)));
  const call = store[operation.kind] as (...parameters: readonly unknown[]) => Promise<unknown>;
  return Promise.all(operation.calls.map((parameters) => call.apply(store, parameters).then(plain, codeOf)));
}

/** Page by page, as people read it: where a page ends is each store's own affair. */
async function listAll(store: Store, filter: RunFilter): Promise<readonly RunRecord[]> {
  const { runs, next } = await store.listRuns(filter);
  if (runs.length > filter.limit) throw new Error(`A page has ${runs.length} runs.`);
  if (next === null) return runs;
  if (filter.before !== undefined && next >= filter.before) throw new Error("The same page comes again.");
  return [...runs, ...(await listAll(store, { ...filter, before: next }))];
}

function codeOf(error: unknown): string {
  if (PawlError.is(error)) return error.code;
  throw error;
}

/** With JSON parsed, so that its spelling does not matter, and maps as objects; without packs, which memory has none of. */
function plain(answer: unknown): unknown {
  if (answer instanceof Map) return plain(Object.fromEntries(answer));
  if (Array.isArray(answer)) return answer.map(plain);
  if (typeof answer !== "object" || answer === null) return answer;
  const entries = Object.entries(answer)
    .filter(([key]) => key !== "pack")
    .map(([key, value]): [string, unknown] => [
      key,
      key === "json" || key === "notes" ? parsed(value) : plain(value),
    ]);
  return Object.fromEntries(entries);
}

function parsed(json: unknown): unknown {
  return typeof json === "string" ? JSON.parse(json) : json;
}
