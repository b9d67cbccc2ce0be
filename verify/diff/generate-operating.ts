import type { ForkedEvent, NewRun } from "../../packages/pawl/src/store/run-record.ts";
import type { RedriveTerms } from "../../packages/pawl/src/store/store.ts";
import { generateRun, pickPayload } from "./generate-start.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

const missingId = "019b76da-0000-7000-8000-000000000002";

/** What an operator might do next. */
export function generateOperating(known: Knowledge): Operation {
  const { dice, snapshot, now } = known;
  const ids = [missingId, ...snapshot.runs.map(({ id }) => id)];
  const runId = dice.chance(0.1) ? missingId : dice.pick(ids);
  if (dice.chance(0.2)) return { kind: "terminate", calls: [[runId, pickPayload(dice)]] };
  if (dice.chance(0.4)) return { kind: "redrive", calls: [[dice.some(ids), generateTerms(known)]] };
  if (dice.chance(0.3)) return { kind: "fork", calls: [[generateFork(known), generateHistory(known)]] };
  const startAt = dice.pick([undefined, null, now - 1, now + dice.between(1, 5_000)]);
  const priority = dice.pick([undefined, dice.between(-1, 1)]);
  return { kind: "reschedule", calls: [[{ runId, priority, startAt }]] };
}

/** From the start now and then, and only if the end is still the one that is known, or is believed to be. */
function generateTerms({ dice, snapshot }: Knowledge): RedriveTerms {
  const endedAt = new Map(
    snapshot.runs.flatMap(({ id, endedAt: at }) =>
      at === null ? [] : [[id, at - dice.pick([0, 0, 1])] as const],
    ),
  );
  return { ...(dice.chance(0.3) && { from: "start" as const }), ...(dice.chance(0.3) && { endedAt }) };
}

function generateHistory({ dice, now }: Knowledge): readonly ForkedEvent[] {
  return Array.from({ length: dice.between(1, 3) }, (_, index) => ({
    seq: index + 1,
    kind: index === 0 ? "forked" : "step_completed",
    at: dice.pick([null, now - 500]),
    name: index === 0 ? null : `s${index}`,
    attempt: dice.pick([null, 1]),
    beganAt: dice.pick([null, now - 700]),
    dueAt: null,
    data: pickPayload(dice),
  }));
}

/** At times equal to a run whose key it has. */
function generateFork(known: Knowledge): NewRun {
  const keyed = known.starts.filter(({ key }) => key !== null);
  const twin = keyed.length > 0 && known.dice.chance(0.4) ? known.dice.pick(keyed) : null;
  if (twin === null) return generateRun(known, { startAt: null });
  const { key, workflow, version, input } = twin;
  return generateRun(known, { startAt: null, mustBeNew: false, key, workflow, version, input });
}
