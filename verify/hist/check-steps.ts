import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { DeliveryEntry, RecordedFact, StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** A step's function returns its token, or throws it: its path, `#`, and a number that no other call has. */
const tokenForm = /"([^"\\]*#\d+)"/;

function tokenIn(data: string | null): string | null {
  return data === null ? null : (tokenForm.exec(data)?.[1] ?? null);
}

export interface StepCheck {
  step(entry: StepEntry): void;
  delivery(entry: DeliveryEntry): void;
  store(entry: StoreEntry): void;
}

interface Recorded {
  readonly entry: StoreEntry & { epoch: number };
  /** Attempts of the run that had failed by then. */
  readonly failedAttempts: number;
}

interface StepLife {
  readonly callBy: Map<number, StepEntry>;
  completed: Recorded | null;
  failed: Recorded | null;
}

/**
 * I3: a holder calls a step's function at most once. Once its result is recorded, nobody who holds the run then or later calls
 * it again; once its failure is, only a new attempt does. A zombie may: it does not know.
 * I14: all executions of an attempt's code are handed the same results in the same order, each recorded before.
 */
export function createStepCheck(report: Report): StepCheck {
  const lives = new Map<string, StepLife>();
  const calls = new Map<string, StepEntry>();
  const recorded = new Set<string>();
  const delivered = new Map<string, DeliveryEntry[]>();
  const lastCallOf = new Map<RunId, StepEntry>();
  /** Attempts of a run that have failed so far, and that had when an epoch began. */
  const failedAttempts = new Map<RunId, number>();
  const failedAtClaim = new Map<string, number>();

  const lifeOf = (run: RunId, step: string): StepLife => {
    const key = `${run} ${step}`;
    let life = lives.get(key);
    if (life === undefined) lives.set(key, (life = { callBy: new Map(), completed: null, failed: null }));
    return life;
  };

  const attemptOf = ({ run, epoch }: { readonly run: RunId; readonly epoch: number }): number =>
    failedAtClaim.get(`${run} ${epoch}`) ?? 0;

  const checkCall = (entry: StepEntry): void => {
    const { callBy, completed, failed } = lifeOf(entry.run, entry.step);
    if (completed !== null && entry.epoch >= completed.entry.epoch) {
      report("I3", `step ${entry.step} ran again after its result was recorded`, completed.entry, entry);
    }
    if (failed !== null && entry.epoch >= failed.entry.epoch && failed.failedAttempts === attemptOf(entry)) {
      report("I3", `step ${entry.step} ran again in the attempt in which it failed`, failed.entry, entry);
    }
    const twin = callBy.get(entry.epoch);
    if (twin !== undefined) report("I3", `one holder called step ${entry.step} twice`, twin, entry);
    callBy.set(entry.epoch, entry);
    const last = lastCallOf.get(entry.run);
    if (last === undefined || entry.epoch >= last.epoch) {
      const isEarlier = last !== undefined && entry.attempt < last.attempt;
      if (isEarlier) report("I3", `attempt ${entry.attempt} after attempt ${last.attempt}`, last, entry);
      lastCallOf.set(entry.run, entry);
    }
  };

  const learn = (entry: StoreEntry & { run: RunId; epoch: number }, facts: readonly RecordedFact[]): void => {
    for (const { kind, data } of facts) {
      const failed = failedAttempts.get(entry.run) ?? 0;
      if (kind === "attempt_failed") failedAttempts.set(entry.run, failed + 1);
      if (kind !== "step_completed" && kind !== "step_failed") continue;
      const token = tokenIn(data);
      if (token === null) continue;
      recorded.add(token);
      const call = calls.get(token);
      if (call?.run !== entry.run || call.type !== (kind === "step_completed" ? "ok" : "fail")) {
        report("I3", "an outcome was recorded that no call of a step in this run had", call ?? null, entry);
        continue;
      }
      const life = lifeOf(entry.run, call.step);
      life[kind === "step_completed" ? "completed" : "failed"] ??= { entry, failedAttempts: failed };
    }
  };

  const checkDelivery = (entry: DeliveryEntry): void => {
    const token = tokenIn(entry.value);
    if (token !== null && !recorded.has(token)) {
      report("I14", "a result was delivered before it was recorded", calls.get(token) ?? null, entry);
    }
    const execution = `${entry.run} ${attemptOf(entry)}`;
    let known = delivered.get(execution);
    if (known === undefined) delivered.set(execution, (known = []));
    const before = known[entry.index];
    if (before === undefined) known[entry.index] = entry;
    else if (before.step !== entry.step || before.type !== entry.type || before.value !== entry.value) {
      report("I14", `two executions differ in delivery ${entry.index}`, before, entry);
    }
  };

  return {
    step(entry) {
      if (entry.type === "invoke") checkCall(entry);
      else calls.set(entry.token, entry);
    },
    delivery: checkDelivery,
    store(entry) {
      if (entry.type === "fail") return;
      if (entry.op === "claim")
        failedAtClaim.set(`${entry.run} ${entry.epoch}`, failedAttempts.get(entry.run) ?? 0);
      if (entry.op === "record" || entry.op === "park" || entry.op === "end") learn(entry, entry.facts);
    },
  };
}
