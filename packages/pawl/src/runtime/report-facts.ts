import type { Payload } from "../core/json.ts";
import type { Emit } from "../core/pawl-event.ts";
import { placeOfError, placeOfEvent, type PayloadPlace } from "../core/payload-codec.ts";
import type { Payloads } from "../core/payloads.ts";
import type { RecordedError } from "../core/recorded-error.ts";
import type { ClaimedRun, NewEvent, ParkAnswer, Parking } from "../store/lease.ts";
import type { RunEnd } from "../store/run-record.ts";

/** A fact that is recorded now, and how long what it speaks of took. */
export interface WrittenFact {
  readonly event: NewEvent;
  readonly tookMs: number | undefined;
}

/** Tells `onEvent` what has become of a held run, once it is in the store. */
export interface FactReport {
  recorded(facts: readonly WrittenFact[], nextDelayMs: number | null): void;
  parked(terms: Pick<Parking, "reason" | "dueAt" | "delayMs">, answer: ParkAnswer): void;
  ended(end: RunEnd): void;
  released(): void;
}

export function createFactReport(
  emit: Emit,
  claimed: ClaimedRun,
  workerId: string,
  /** The store's time, as far as it is known. */
  now: () => number,
  payloads: Payloads,
): FactReport {
  const { runId, workflow, version, queue, attempt, createdAt } = claimed;
  const about = () => ({ at: new Date(now()), runId, workflow, version, queue, workerId, attempt });

  const readError = (data: Payload | null, place: PayloadPlace): RecordedError | null =>
    data === null ? null : (payloads.decode(data, place) as RecordedError);

  const recordedOne = ({ event, tookMs = 0 }: WrittenFact, nextDelayMs: number | null): void => {
    const step = event.name ?? "";
    const { kind } = event;
    if (kind === "step_completed") {
      emit({ kind: "step.completed", ...about(), step, durationMs: tookMs });
    } else if (kind === "step_failed") {
      emit({
        kind: "step.failed",
        ...about(),
        step,
        durationMs: tookMs,
        error: readError(event.data, placeOfEvent(runId, event)),
      });
    } else if (kind === "attempt_failed") {
      const error = readError(event.data, placeOfEvent(runId, event));
      emit({ kind: "attempt.failed", ...about(), error, nextDelayMs });
    }
  };

  return {
    recorded(facts, nextDelayMs) {
      for (const fact of facts) recordedOne(fact, nextDelayMs);
    },
    parked({ reason, dueAt, delayMs }, answer) {
      const dueAts = [...answer.dueAt.values()];
      if (dueAt !== null) dueAts.push(dueAt);
      if (delayMs !== null) dueAts.push(answer.now + delayMs);
      const due = { dueAt: dueAts.length === 0 ? null : new Date(Math.min(...dueAts)) };
      if (reason === "blocked") emit({ kind: "run.blocked", ...about(), ...due });
      else emit({ kind: "run.parked", ...about(), reason, ...due });
    },
    ended({ status, error }) {
      const at = about();
      const durationMs = Math.max(0, at.at.getTime() - createdAt);
      if (status === "failed")
        emit({ kind: "run.failed", ...at, durationMs, error: readError(error, placeOfError(runId)) });
      else if (status !== "expired") emit({ kind: `run.${status}`, ...at, durationMs });
    },
    released() {
      emit({ kind: "run.released", ...about() });
    },
  };
}
