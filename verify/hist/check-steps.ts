import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { Lives } from "./lives.ts";
import type { DeliveryEntry, RecordedFact, StepEntry, StoreEntry } from "./record.ts";
import type { Report } from "./verdict.ts";

/** A step's function returns its token, or throws it: its path, `#`, and a number that no other call has. */
const tokenForm = /"([^"\\]*#\d+)"/;

/** A step's result and nothing else. */
const stepResult = /^"([^"\\]*)#\d+"$/;

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
  /** In which attempt. */
  readonly beginnings: number;
}

interface StepLife {
  /** By epoch and attempt at the step. */
  readonly callBy: Map<string, StepEntry>;
  completed: Recorded | null;
  failed: Recorded | null;
  isUndone: boolean;
}

/** Attempts at a step in the run's present life. */
interface StepTries {
  failed: number;
  /** Of the next one. */
  dueAt: number | null;
  last: StoreEntry | null;
}

/**
 * I3: a holder calls a step's function at most once, unless in a transaction that was rolled back. Once its result is recorded, nobody who holds the run then or later calls
 * it again; once its failure is, only a new attempt does. A zombie may: it does not know.
 * Attempts count on in another life.
 * I14: all executions of an attempt's code are handed the same results in the same order, each recorded before.
 */
export function createStepCheck(lives: Lives, report: Report): StepCheck {
  const stepLives = new Map<string, StepLife>();
  const calls = new Map<string, StepEntry>();
  const recorded = new Set<string>();
  const delivered = new Map<string, DeliveryEntry[]>();
  const lastCallOf = new Map<RunId, StepEntry>();
  /** How often a run's code has begun anew: after a failed attempt, or in another life. And how often it had when an epoch began. */
  const beginnings = new Map<RunId, number>();
  const beginningsAtClaim = new Map<string, number>();
  const redrivesAtClaim = new Map<string, number>();
  const lastSeq = new Map<RunId, number>();
  const newestEpoch = new Map<RunId, number>();
  const triesBy = new Map<string, StepTries>();
  const keys = new Map<string, StepEntry>();
  const called = new Map<string, StepEntry>();
  /** What a run that began anew had done before, and with which of its lives it did. */
  const stale = new Map<string, number>();
  /** Steps that have an outcome, by their keys. */
  const stepBy = new Map<string, string>();
  const owners = new Map<string, StepEntry>();
  /** Attempts that have failed in the present life. */
  const failures = new Map<RunId, number>();

  const lifeOf = (run: RunId, step: string): StepLife => {
    const key = `${run} ${step}`;
    let life = stepLives.get(key);
    if (life === undefined)
      stepLives.set(key, (life = { callBy: new Map(), completed: null, failed: null, isUndone: false }));
    return life;
  };

  const triesOf = (run: RunId, key: string): StepTries => {
    const id = `${run} ${key}`;
    let tries = triesBy.get(id);
    if (tries === undefined) triesBy.set(id, (tries = { failed: 0, dueAt: null, last: null }));
    return tries;
  };

  const attemptOf = ({ run, epoch }: { readonly run: RunId; readonly epoch: number }): number =>
    beginningsAtClaim.get(`${run} ${epoch}`) ?? 0;

  const redrivesOf = ({ run, epoch }: StepEntry): number => redrivesAtClaim.get(`${run} ${epoch}`) ?? 0;

  /** Attempts never count down, and in another life they count on. */
  const leastAttempt = (last: StepEntry, entry: StepEntry): number =>
    last.attempt + (redrivesOf(entry) > redrivesOf(last) ? 1 : 0);

  /** As many attempts have failed as the history of this life says; a zombie may not know of the last ones. */
  const checkStepAttempt = (entry: StepEntry): void => {
    const { run, epoch, key, stepAttempt } = entry;
    if (redrivesOf(entry) < lives.redrivesOf(run)) return;
    const tries = triesOf(run, key);
    const isNext =
      epoch === newestEpoch.get(run) ? stepAttempt === tries.failed + 1 : stepAttempt <= tries.failed + 1;
    if (!isNext)
      report("I3", `attempt ${stepAttempt} at step ${entry.step} after ${tries.failed}`, tries.last, entry);
    const dueAt = tries.dueAt ?? 0;
    if (stepAttempt === tries.failed + 1 && dueAt > entry.at)
      report("I9", `step ${entry.step} was tried again ${dueAt - entry.at} ms early`, tries.last, entry);
    const id = `${run} ${attemptOf(entry)}`;
    const known = keys.get(`${id} ${entry.step}`);
    const owner = owners.get(`${id} ${key}`);
    if ((known ?? entry).key !== key || (owner ?? entry).step !== entry.step)
      report("I3", "an idempotency key is not that of one step", known ?? null, owner ?? null, entry);
    keys.set(`${id} ${entry.step}`, entry);
    owners.set(`${id} ${key}`, entry);
  };

  /** Whoever holds the run. */
  const checkOnce = (entry: StepEntry): void => {
    const id = `${entry.run} ${entry.step} ${redrivesOf(entry)} ${entry.stepAttempt}`;
    const before = called.get(id);
    if (before !== undefined && before.epoch < entry.epoch)
      report("I3", `step ${entry.step} was called again after its worker died in it`, before, entry);
    called.set(id, entry);
  };

  const checkCall = (entry: StepEntry): void => {
    const { callBy, completed, failed } = lifeOf(entry.run, entry.step);
    if (completed !== null && entry.epoch >= completed.entry.epoch) {
      report("I3", `step ${entry.step} ran again after its result was recorded`, completed.entry, entry);
    }
    if (failed !== null && entry.epoch >= failed.entry.epoch && failed.beginnings === attemptOf(entry)) {
      report("I3", `step ${entry.step} ran again in the attempt in which it failed`, failed.entry, entry);
    }
    const callId = `${entry.epoch} ${entry.stepAttempt}`;
    const twin = callBy.get(callId);
    if (twin !== undefined && entry.isTransactional !== true)
      report("I3", `one holder called step ${entry.step} twice in one attempt`, twin, entry);
    callBy.set(callId, entry);
    checkStepAttempt(entry);
    if (entry.failsOnCrash === true) checkOnce(entry);
    const last = lastCallOf.get(entry.run);
    if (last === undefined || entry.epoch >= last.epoch) {
      const isEarlier = last !== undefined && entry.attempt < leastAttempt(last, entry);
      if (isEarlier) report("I3", `attempt ${entry.attempt} after attempt ${last.attempt}`, last, entry);
      lastCallOf.set(entry.run, entry);
    }
  };

  const learn = (entry: StoreEntry & { run: RunId; epoch: number }, facts: readonly RecordedFact[]): void => {
    for (const { seq, kind, data, name, dueAt } of facts) {
      // A write whose answer was lost is repeated.
      const isNew = seq > (lastSeq.get(entry.run) ?? 0);
      if (isNew) lastSeq.set(entry.run, seq);
      if (isNew && name !== null && (kind === "step_retried" || kind === "step_failed")) {
        const tries = triesOf(entry.run, name);
        Object.assign(tries, { failed: tries.failed + 1, dueAt: dueAt ?? null, last: entry });
      }
      if (kind === "undo_completed" && name !== null) {
        const step = stepBy.get(`${entry.run} ${name}`);
        if (step !== undefined) lifeOf(entry.run, step).isUndone = true;
      }
      const begun = beginnings.get(entry.run) ?? 0;
      if (kind === "attempt_failed") {
        beginnings.set(entry.run, begun + 1);
        failures.set(entry.run, (failures.get(entry.run) ?? 0) + 1);
      }
      if (kind !== "step_completed" && kind !== "step_failed") continue;
      const token = tokenIn(data);
      if (token === null) continue;
      recorded.add(token);
      const call = calls.get(token);
      if (call?.run !== entry.run || call.type !== (kind === "step_completed" ? "ok" : "fail")) {
        report("I3", "an outcome was recorded that no call of a step in this run had", call ?? null, entry);
        continue;
      }
      stepBy.set(`${entry.run} ${call.key}`, call.step);
      const life = lifeOf(entry.run, call.step);
      life[kind === "step_completed" ? "completed" : "failed"] ??= { entry, beginnings: begun };
    }
  };

  /** In another life attempts at steps count from 1, and what was undone is done again. */
  const beginAnew = (run: RunId, isFresh: boolean): void => {
    if (isFresh)
      for (const [token, call] of calls) if (call.run === run) stale.set(token, lives.redrivesOf(run));
    for (const id of triesBy.keys()) if (id.startsWith(`${run} `)) triesBy.delete(id);
    for (const [id, life] of stepLives)
      if ((life.isUndone || isFresh) && id.startsWith(`${run} `))
        Object.assign(life, { completed: null, failed: null, isUndone: false });
  };

  const checkDelivery = (entry: DeliveryEntry): void => {
    // The engine's own errors speak of steps, too.
    const token = entry.type === "ok" ? tokenIn(entry.value) : null;
    if (token !== null && !recorded.has(token)) {
      report("I14", "a result was delivered before it was recorded", calls.get(token) ?? null, entry);
    }
    // What a fork was given of it is the fork's own.
    const since = calls.get(token ?? "")?.run === entry.run ? stale.get(token ?? "") : undefined;
    if (since !== undefined && (redrivesAtClaim.get(`${entry.run} ${entry.epoch}`) ?? 0) >= since)
      report("I14", "a run that began anew was given what it had done before", entry);
    const path = stepResult.exec(entry.value)?.[1];
    if (path !== undefined && path !== entry.step)
      report("I14", `the code got for ${entry.step} what another step returned`, entry);
    const execution = `${entry.run} ${attemptOf(entry)}`;
    let known = delivered.get(execution);
    if (known === undefined) delivered.set(execution, (known = []));
    const before = known[entry.index];
    if (before === undefined) known[entry.index] = entry;
    else if (before.step !== entry.step || before.type !== entry.type || before.value !== entry.value) {
      report("I14", `two executions differ in delivery ${entry.index}`, before, entry);
    } else if (before.now !== entry.now || before.random !== entry.random) {
      report(
        "I14",
        `two executions were told another time or chance at delivery ${entry.index}`,
        before,
        entry,
      );
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
      if (entry.op === "claim") {
        newestEpoch.set(entry.run, entry.epoch);
        beginningsAtClaim.set(`${entry.run} ${entry.epoch}`, beginnings.get(entry.run) ?? 0);
        redrivesAtClaim.set(`${entry.run} ${entry.epoch}`, lives.redrivesOf(entry.run));
        const failed = failures.get(entry.run) ?? 0;
        if ((entry.failures ?? 0) > failed)
          report("I3", `${failed} attempts have failed in this life`, entry);
      }
      if (entry.op === "redrive") {
        for (const [run, answer] of entry.answers)
          if (answer === "redriven") {
            beginnings.set(run, (beginnings.get(run) ?? 0) + 1);
            failures.delete(run);
            beginAnew(run, entry.isFresh === true);
          }
      }
      if (entry.op === "record" || entry.op === "park" || entry.op === "end") learn(entry, entry.facts);
    },
  };
}
