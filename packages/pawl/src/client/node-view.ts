import { readNodes, type NodeRecord } from "../core/graph-state.ts";
import { placeOfError, placeOfEvent } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { ChildRecord, RunRecord } from "../store/run-record.ts";
import type { PublishedRecord } from "../store/showing.ts";

/** A node of a run's graph as it is now. */
export interface NodeView extends Omit<NodeRecord, "beganAt" | "endedAt"> {
  /** When its first child run was started. */
  readonly beganAt: Date | null;
  /** When its newest child run ended. */
  readonly endedAt: Date | null;
}

export function readNodeViews(
  run: RunRecord,
  published: readonly PublishedRecord[],
  children: readonly ChildRecord[],
  payloads: Payloads,
): readonly NodeView[] {
  const shown = published.map(({ key, name, data, at }) => {
    const value: unknown = payloads.decode(data, placeOfEvent(run.id, { kind: "published", name }));
    return [key, { value, at }] as const;
  });
  const ofNodes = children.map(({ error, epoch, ...child }) => ({
    ...child,
    hasBegun: epoch > 0,
    reason: error === null ? null : payloads.decodeError(error, placeOfError(child.id)).message,
  }));
  return readNodes(new Map(shown), ofNodes, run.endedAt !== null).map((node) => ({
    ...node,
    beganAt: node.beganAt === null ? null : new Date(node.beganAt),
    endedAt: node.endedAt === null ? null : new Date(node.endedAt),
  }));
}
