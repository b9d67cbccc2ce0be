import type pg from "pg";
import { bindSchema, databaseClock, type SchemaName } from "../../src/postgres/schema-name.ts";
import type { Transition } from "../../src/postgres/transition.ts";
import { processorMsOf } from "./processor-time.ts";

/** What one call cost the server, all statements inside it included. */
export interface CallCost {
  /** Pages looked at, in memory or not. */
  readonly buffers: number;
  /** Processor time where it can be read, else the time that passed. */
  readonly ms: number;
  /** What it answered. */
  readonly rows: number;
}

interface ExplainedPlan {
  readonly Plan: {
    readonly "Shared Hit Blocks": number;
    readonly "Shared Read Blocks": number;
    readonly "Actual Rows": number;
  };
  readonly "Execution Time": number;
}

/** Carries the call out on this connection, and answers its cost. */
export async function costOfCall(
  client: pg.Client,
  schema: SchemaName,
  transition: Transition,
  values: readonly unknown[],
): Promise<CallCost> {
  const text = bindSchema(transition.text, schema, databaseClock);
  const before = processorMsOf(client);
  const { rows } = await client.query<{ "QUERY PLAN": readonly ExplainedPlan[] }>(
    `explain (analyze, buffers, timing off, format json) ${text}`,
    [...values],
  );
  const after = processorMsOf(client);
  const [explained] = rows[0]!["QUERY PLAN"];
  const { Plan: plan } = explained!;
  return {
    buffers: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
    rows: plan["Actual Rows"],
    ms: before === null || after === null ? explained!["Execution Time"] : after - before,
  };
}
