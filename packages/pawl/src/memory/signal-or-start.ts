import type { SignalOrStart, SignalOrStartAnswer } from "../store/signal-or-start.ts";
import { createRuns } from "./create.ts";
import type { State } from "./state.ts";
import { tell } from "./tell.ts";

export function signalOrStart(state: State, { run, message, boundTo }: SignalOrStart): SignalOrStartAnswer {
  const ownerId = state.keys.get(run.key ?? "");
  const owner = ownerId === undefined ? undefined : state.runs.get(ownerId);
  const id = owner?.id ?? run.id;
  if (owner !== undefined && owner.workflow !== run.workflow) return { kind: "conflict", id, told: null };
  if (boundTo !== null && boundTo !== id) return { kind: "elsewhere", id, told: null };
  if (owner === undefined) createRuns(state, [run]);
  const told = tell(state, { ...message, runId: id });
  return { kind: id === run.id ? "created" : "found", id, told };
}
