import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import { closedStream, publishedKey } from "../../packages/pawl/src/core/request-key.ts";
import type { SnapshotEvent, StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import type { FinalState } from "./check-facts.ts";
import type { ClientEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** What somebody read of a stream. */
export interface StreamedItem {
  readonly position: number;
  readonly value: unknown;
}

type Item = StoreSnapshot["streams"][number];

/**
 * I15 for what runs show: a stream holds what its run has written, each once, in order and without gaps, and its readers get
 * all of it. Of what is published, readers get what was published under that key, and from the end on the last.
 */
export function createShownCheck(final: FinalState, report: Report): (entry: ClientEntry) => void {
  const streams = new Map<string, Item[]>();
  for (const item of final.snapshot.streams) {
    const id = `${item.runId} ${item.name}`;
    const items = streams.get(id);
    if (items === undefined) streams.set(id, [item]);
    else items.push(item);
  }
  for (const items of streams.values()) checkItems(items, report);
  checkWritten(final, report);

  const checkReader = (entry: ClientEntry, run: RunId): void => {
    const seen = entry.value as readonly StreamedItem[];
    const items = (streams.get(`${run} ${entry.key}`) ?? []).filter(({ isClosing }) => !isClosing);
    const wrong = seen.find(
      ({ position, value }, index) =>
        position !== index + 1 || JSON.stringify(value) !== JSON.stringify(items[index]?.data?.value),
    );
    if (wrong !== undefined) report("I15", "a reader got what is not in the stream there", wrong, entry);
    // One that lived again has written more since.
    const isWhole = !hasLivedAgain(final.events.get(run) ?? []);
    if (isWhole && seen.length !== items.length)
      report("I15", `a reader got ${seen.length} of ${items.length} items`, entry, items.at(-1));
  };

  const askedAt = new Map<number, number>();

  const checkPublished = (entry: ClientEntry, run: RunId): void => {
    const events = final.events.get(run) ?? [];
    const { endedAt = null } = final.runs.get(run) ?? {};
    const isOver = endedAt !== null && (askedAt.get(entry.call) ?? 0) > endedAt && !hasLivedAgain(events);
    for (const [key, value] of Object.entries(entry.value as Readonly<Record<string, unknown>>)) {
      const facts = events.filter(
        ({ kind, name }) => kind === "published" && publishedKey(name ?? "") === key,
      );
      const may = isOver ? facts.slice(-1) : facts;
      if (!may.some(({ data }) => data?.value === value))
        report("I15", `under ${key} somebody read what was not published there`, entry, ...may);
    }
  };

  return (entry) => {
    if (entry.op === "published" && entry.type === "invoke") askedAt.set(entry.call, entry.at);
    if (entry.type !== "ok" || entry.run === null) return;
    if (entry.op === "stream") checkReader(entry, entry.run);
    if (entry.op === "published") checkPublished(entry, entry.run);
  };
}

function hasLivedAgain(events: readonly SnapshotEvent[]): boolean {
  return events.some(({ kind }) => kind === "redriven");
}

function checkItems(items: readonly Item[], report: Report): void {
  const seen = new Map<string, Item>();
  const lastOf = new Map<string, number>();
  for (const [index, item] of items.entries()) {
    if (item.position !== index + 1) report("I15", `a stream has ${item.position} at ${index + 1}`, item);
    if (item.isClosing) continue;
    const value = String(item.data?.value);
    const twin = seen.get(value);
    if (twin !== undefined) report("I15", "an item is in a stream twice", twin, item);
    seen.set(value, item);
    const [path = "", number = ""] = value.split(":");
    const last = lastOf.get(path) ?? -1;
    if (Number(number) !== last + 1) report("I15", `item ${number} of ${path} comes after ${last}`, item);
    lastOf.set(path, Number(number));
  }
}

/** As many items as facts say. */
function checkWritten(final: FinalState, report: Report): void {
  const written = new Map<RunId, number>();
  for (const { runId, isClosing } of final.snapshot.streams)
    if (!isClosing) written.set(runId, (written.get(runId) ?? 0) + 1);
  for (const [runId, events] of final.events) {
    const facts = events.filter(
      ({ kind, name, data }) =>
        kind === "stream_written" && data === null && closedStream(name ?? "") === null,
    );
    if (facts.length !== (written.get(runId) ?? 0))
      report("I15", `${facts.length} facts tell of ${written.get(runId) ?? 0} items`, facts.at(-1) ?? runId);
  }
}
