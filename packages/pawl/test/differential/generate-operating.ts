import { pickPayload } from "./generate-start.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

const missingId = "019b76da-0000-7000-8000-000000000002";

/** What an operator might do next. */
export function generateOperating(known: Knowledge): Operation {
  const { dice, snapshot, now } = known;
  const ids = [missingId, ...snapshot.runs.map(({ id }) => id)];
  const runId = dice.pick(ids);
  if (dice.chance(0.2)) return { kind: "terminate", calls: [[runId, pickPayload(dice)]] };
  if (dice.chance(0.4)) return { kind: "redrive", calls: [[dice.some(ids)]] };
  const startAt = dice.pick([undefined, null, now - 1, now + dice.between(1, 5_000)]);
  const priority = dice.pick([undefined, dice.between(-1, 1)]);
  return { kind: "reschedule", calls: [[{ runId, priority, startAt }]] };
}
