import type { Payload } from "./json.ts";
import type { PayloadPlace } from "./payload-codec.ts";
import type { Payloads } from "./payloads.ts";
import type { RecordedError } from "./recorded-error.ts";

/** An update as the fact of its receipt tells. */
export interface ReceivedUpdate {
  /** Of the message, which the answer names. */
  readonly id: string;
  readonly payload: unknown;
}

/** What became of an update: its handler returned or threw, or it was refused before any could see it. */
export type UpdateAnswer =
  | { readonly status: "answered"; readonly output: unknown }
  | { readonly status: "failed" | "refused"; readonly error: RecordedError };

/** Payloads go in as they are sealed, with their notes beside; none is left out. */
export function writeReceived(id: string, payload: Payload | null): Payload {
  return {
    json: payload === null ? `{"id":"${id}"}` : `{"id":"${id}","payload":${payload.json}}`,
    notes: noteOn("payload", payload),
  };
}

/** @throws {PawlError} as `Payloads.decode` does */
export function readReceived(data: Payload, place: PayloadPlace, payloads: Payloads): ReceivedUpdate {
  const { id, ...rest } = JSON.parse(data.json) as { readonly id: string; readonly payload?: unknown };
  return { id, payload: readPart(rest, "payload", data, place, payloads) };
}

export function writeAnswered(output: Payload | null): Payload {
  return {
    json: output === null ? `{"status":"answered"}` : `{"status":"answered","output":${output.json}}`,
    notes: noteOn("output", output),
  };
}

export function writeUnanswered(status: "failed" | "refused", error: Payload): Payload {
  return { json: `{"status":"${status}","error":${error.json}}`, notes: noteOn("error", error) };
}

/** @throws {PawlError} as `Payloads.decode` does */
export function readAnswer(data: Payload, place: PayloadPlace, payloads: Payloads): UpdateAnswer {
  const said = JSON.parse(data.json) as { readonly status: UpdateAnswer["status"] };
  if (said.status === "answered")
    return { status: said.status, output: readPart(said, "output", data, place, payloads) };
  return { status: said.status, error: readPart(said, "error", data, place, payloads) as RecordedError };
}

/** A receipt or an answer for another place: what lies in it was sealed for its own. As `Payloads.move`. */
export function moveUpdate(data: Payload, from: PayloadPlace, to: PayloadPlace, payloads: Payloads): Payload {
  const noted = JSON.parse(data.notes ?? "{}") as Record<string, unknown>;
  const members = JSON.parse(data.json) as Record<string, unknown>;
  for (const [part, notes] of Object.entries(noted)) {
    const there = { json: JSON.stringify(members[part]), notes: JSON.stringify(notes) };
    const moved = payloads.move(there, from, to);
    if (moved === null || moved === there) continue;
    members[part] = JSON.parse(moved.json);
    noted[part] = JSON.parse(moved.notes ?? "null");
  }
  return data.notes === null ? data : { json: JSON.stringify(members), notes: JSON.stringify(noted) };
}

function noteOn(part: string, payload: Payload | null): string | null {
  return payload === null || payload.notes === null ? null : `{"${part}":${payload.notes}}`;
}

function readPart(
  members: object,
  part: string,
  { notes }: Payload,
  place: PayloadPlace,
  payloads: Payloads,
): unknown {
  if (!Object.hasOwn(members, part)) return undefined;
  const noted = JSON.parse(notes ?? "{}") as Readonly<Record<string, unknown>>;
  const value = (members as Readonly<Record<string, unknown>>)[part];
  return payloads.decodeParsed(value, noted[part] ?? null, place);
}
