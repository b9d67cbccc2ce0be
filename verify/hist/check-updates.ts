import type { SnapshotEvent, SnapshotMessage } from "../../packages/pawl/src/store/snapshot.ts";
import { kindOfUpdate, type Program } from "../gen/program.ts";
import type { FinalState } from "./check-facts.ts";
import type { ClientEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** What a caller was told of an update. */
export interface SeenAnswer {
  readonly status: string;
  readonly output: unknown;
}

/**
 * I10 for updates: each is there once per idempotency key, and received once; everybody who sent it is answered what its
 * handler said, once. Who completes has answered all that it received, and who waits for ever all that was sent.
 */
export function createUpdateCheck(final: FinalState, report: Report): (entry: ClientEntry) => void {
  const messages = final.snapshot.inbox.filter(({ topic }) => topic.startsWith("update:"));
  const eventOf = ({ runId }: SnapshotMessage, seq: number | null): SnapshotEvent | null =>
    seq === null ? null : (final.events.get(runId)?.[seq - 1] ?? null);

  for (const message of messages) checkMessage(message);
  checkReceived(final, report);

  function checkMessage(message: SnapshotMessage): void {
    const run = final.runs.get(message.runId);
    const received = eventOf(message, message.takenSeq);
    const answered = eventOf(message, message.answerSeq);
    const isRefused = answered !== null && answered.name === null;
    if (answered !== null && !isRefused && answered.name !== received?.name)
      report("I10", "an update was answered by the handler of another", message, received, answered);
    const isOpen = received !== null && answered === null;
    if (run?.status === "completed" && isOpen)
      report("I10", "a run completed that owes the answer to an update", message, received, run);
    const serves = (run?.input?.value as Program | undefined)?.serves === true;
    if (run?.status === null && serves && answered === null)
      report("I10", "a run waits, and does not answer an update", message, received, run);
    if (answered !== null) checkAnswer(message, answered);
  }

  function checkAnswer(message: SnapshotMessage, event: SnapshotEvent): void {
    const payload = String(message.data?.value);
    const { status, output } = (event.data?.value ?? {}) as SeenAnswer;
    const token = typeof output === "string" ? output.split("#")[0] : undefined;
    const isRight =
      status === kindOfUpdate(payload) && (status !== "answered" || token?.endsWith(`u:${payload}`) === true);
    if (!isRight) report("I10", "an update was answered with what its handler did not say", message, event);
  }

  return (entry) => {
    if (entry.op !== "update" || entry.type !== "ok") return;
    const { status, output } = entry.value as SeenAnswer;
    const sent = messages.filter(
      ({ runId, idempotencyKey }) => runId === entry.run && idempotencyKey === entry.key,
    );
    const [message] = sent;
    if (sent.length !== 1 || message === undefined)
      return report("I10", "an update that was answered is not there once", entry, ...sent);
    const event = eventOf(message, message.answerSeq);
    const said = event?.data?.value as SeenAnswer | undefined;
    if (said?.status !== status || (status === "answered" && said.output !== output))
      report("I10", "a caller was answered otherwise than the history says", entry, event);
  };
}

function checkReceived(final: FinalState, report: Report): void {
  const received = new Map<string, SnapshotEvent>();
  for (const event of final.snapshot.events) {
    if (event.kind !== "update_received") continue;
    const { id } = (event.data?.value ?? {}) as { readonly id: string };
    const twin = received.get(id);
    if (twin !== undefined) report("I10", "an update was received twice", twin, event);
    received.set(id, event);
  }
}
