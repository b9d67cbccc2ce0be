import type { RunId } from "./ids.ts";
import type { Payload } from "./json.ts";
import { placeOfError, placeOfOutput } from "./payload-codec.ts";
import type { Payloads } from "./payloads.ts";
import type { RecordedError } from "./recorded-error.ts";
import type { EndStatus } from "./run-status.ts";

/** How a child ended, as its message and the fact made of it tell. */
export interface ChildEnd {
  readonly id: string;
  readonly status: EndStatus;
  readonly output: unknown;
  readonly error: RecordedError | null;
}

/** As the store writes it: the child's own payloads, and in the notes the notes on them. No output is left out. */
interface StoredChildEnd {
  readonly id: string;
  /** The run that the parent started, where that went on as others and this one is the last. */
  readonly first?: string;
  readonly status: EndStatus;
  readonly output?: unknown;
  readonly error: unknown;
}

/** Without looking at its payloads, which may be sealed. */
export function statusOfChild(data: Payload | null): EndStatus | null {
  return data === null ? null : (JSON.parse(data.json) as StoredChildEnd).status;
}

/** The run that the parent started, as how it ended tells. */
export function startedChild(data: Payload | null): string | null {
  if (data === null) return null;
  const { id, first } = JSON.parse(data.json) as StoredChildEnd;
  return first ?? id;
}

/** Data of a `child_started` fact. */
interface ChildStart {
  readonly id: string;
  /** The code asked for the start alone, to have a handle. */
  readonly alone?: true;
}

export function describeStart(id: string, isAlone: boolean): Payload {
  const start: ChildStart = isAlone ? { id, alone: true } : { id };
  return { json: JSON.stringify(start), notes: null };
}

/** The id of the child that a `child_started` fact speaks of. */
export function idOfChild(data: Payload | null): string | null {
  return data === null ? null : (JSON.parse(data.json) as ChildStart).id;
}

export function isStartAlone(data: Payload | null): boolean {
  return data !== null && (JSON.parse(data.json) as ChildStart).alone === true;
}

/**
 * Payloads were sealed for the child, so that is where they are opened.
 * @param childId who was started: what is another child's does not pass for its own
 * @throws {PawlError} as `Payloads.decode` does
 */
export function readChildEnd(data: Payload, childId: string | null, payloads: Payloads): ChildEnd {
  const end = JSON.parse(data.json) as StoredChildEnd;
  const notes = JSON.parse(data.notes ?? "{}") as { readonly output?: unknown; readonly error?: unknown };
  const { id, status } = end;
  const sealedFor = childId === null || end.first === childId ? id : childId;
  return {
    id,
    status,
    output: Object.hasOwn(end, "output")
      ? payloads.decodeParsed(end.output, notes.output ?? null, placeOfOutput(sealedFor))
      : undefined,
    error:
      end.error === null
        ? null
        : (payloads.decodeParsed(end.error, notes.error ?? null, placeOfError(sealedFor)) as RecordedError),
  };
}

/**
 * The message by which a parent asks its child to stop, because it ends or because the child lost a race: repeated, it is
 * the same. As `cancel_from_parent_v1` makes it.
 * @param life of the parent, as its last `redriven` fact is numbered: what was asked in an earlier one does not count in this
 */
export function cancelFromParentId(childId: RunId, parentId: RunId, life = 0): string {
  const tail = (Number.parseInt(parentId.slice(-12), 16) + life) % 2 ** 48;
  return childId.slice(0, -12) + tail.toString(16).padStart(12, "0");
}
