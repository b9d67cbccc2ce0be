import type { RunId } from "../core/ids.ts";
import { publishedKey } from "../core/request-key.ts";
import type { PublishedRecord } from "../store/showing.ts";
import { loadHistory } from "./read.ts";
import { compareText } from "./sorted-list.ts";
import type { State } from "./state.ts";

export function readPublished(state: State, runId: RunId, key: string | null): readonly PublishedRecord[] {
  const published = new Map<string, PublishedRecord>();
  for (const { kind, name, data, at } of loadHistory(state, runId, 0)) {
    if (kind !== "published" || name === null) continue;
    const publishedUnder = publishedKey(name);
    if (key === null || key === publishedUnder)
      published.set(publishedUnder, { key: publishedUnder, name, data, at });
  }
  return [...published.values()].sort((a, b) => compareText(a.key, b.key));
}
