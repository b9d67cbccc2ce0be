import type { RunId } from "../core/ids.ts";
import { assertName } from "../core/name.ts";
import { placeOfEvent } from "../core/payload-codec.ts";
import { schemaOf, type WorkflowRef } from "../core/workflow-ref.ts";
import type { PublishedRecord } from "../store/showing.ts";
import type { Connection } from "./connection.ts";
import { assertRunId, notFound } from "./run-id.ts";

/** What runs show of themselves. */
export interface Showing {
  /** The last value under a key, or all of them by key. */
  published(runId: RunId, key: string | undefined, workflow?: WorkflowRef): Promise<unknown>;
}

export function createShowing({ store, payloads, call }: Connection): Showing {
  const valueOf = (runId: RunId, { name, data }: PublishedRecord): unknown =>
    payloads.decode(data, placeOfEvent(runId, { kind: "published", name }));

  const read = async (runId: RunId, key: string | null): Promise<readonly PublishedRecord[]> => {
    assertRunId(runId);
    const records = await call(() => store.readPublished(runId, key));
    if (records.length === 0 && (await call(() => store.getEnds([runId]))).size === 0) throw notFound(runId);
    return records;
  };

  return {
    async published(runId, key, workflow) {
      if (key === undefined) {
        const records = await read(runId, null);
        return Object.fromEntries(records.map((record) => [record.key, valueOf(runId, record)]));
      }
      assertName("published value", key);
      schemaOf(workflow?.publishedSchemas, "published value", key);
      const [record] = await read(runId, key);
      return record === undefined ? undefined : valueOf(runId, record);
    },
  };
}
