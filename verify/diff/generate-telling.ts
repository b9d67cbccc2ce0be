import type { NewMessage, Topic } from "../../packages/pawl/src/store/message.ts";
import type { SignalOrStart } from "../../packages/pawl/src/store/signal-or-start.ts";
import { generateRun, pickPayload } from "./generate-start.ts";
import type { Knowledge } from "./knowledge.ts";
import type { Operation } from "./operation.ts";

export const topics: readonly Topic[] = ["signal:a", "signal:b", "update:u", "cancel", "pause", "resume"];

const missingId = "019b76da-0000-7000-8000-000000000001";

export function generateTelling(known: Knowledge): Operation {
  const { dice, snapshot, messages } = known;
  const ids = snapshot.runs.map(({ id }) => id);
  const parkedIds = snapshot.parked.map(({ runId }) => runId);
  // Mostly to those who wait: there most depends on what they are told.
  const liveIds =
    parkedIds.length > 0 && dice.chance(0.5)
      ? parkedIds
      : snapshot.runs.flatMap(({ id, status }) => (status === null ? [id] : []));
  if (dice.chance(0.15)) return { kind: "wakeTold", calls: [[[...dice.some(ids), missingId]]] };
  if (liveIds.length === 0) return { kind: "tell", calls: [[generateMessage(known, missingId)]] };
  if (dice.chance(0.2)) return { kind: "insertMessage", message: generateMessage(known, dice.pick(liveIds)) };
  if (dice.chance(0.2)) return { kind: "signalOrStart", calls: [[generateSignalOrStart(known)]] };
  if (messages.length > 0 && dice.chance(0.1)) return { kind: "tell", calls: [[dice.pick(messages)]] };
  if (dice.chance(0.15))
    return { kind: "tell", calls: [[generateMessage(known, dice.pick([...ids, missingId]))]] };
  // Merged calls each to a run of its own: to one run they would be told at once, and not one after the other.
  const told = dice.chance(0.25) ? dice.some(liveIds, 4) : [dice.pick(liveIds)];
  return { kind: "tell", calls: told.map((runId) => [generateMessage(known, runId)]) };
}

function generateMessage(known: Knowledge, runId: string): NewMessage {
  const { dice } = known;
  return {
    id: known.nextId(),
    runId,
    topic: dice.pick(topics),
    data: pickPayload(dice),
    idempotencyKey: dice.chance(0.25) ? dice.pick(["x", "y"]) : null,
  };
}

function generateSignalOrStart(known: Knowledge): SignalOrStart {
  const { dice, snapshot } = known;
  const run = generateRun(known, { key: dice.pick(["k", "l", "m", `own ${known.nextId()}`]) });
  const owner = snapshot.keys.find(({ key }) => key === run.key)?.runId;
  const { runId: _, ...message } = generateMessage(known, run.id);
  return { run, message, boundTo: dice.pick([null, null, run.id, owner ?? run.id]) };
}
