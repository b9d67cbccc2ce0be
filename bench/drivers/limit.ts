import pg from "pg";
import type { OpenDriver } from "../driver.ts";
import { openSketch, type Sketch } from "../limit/sketch.ts";

/** What is possible at all, through the same driver and on the same Postgres: for what, `limit/sketch.ts` says. */
export const open: OpenDriver = (url) => {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  let sketch: Promise<Sketch> | null = null;
  const get = (): Promise<Sketch> => (sketch ??= openSketch(url));

  return {
    product: "limit",
    settings: "a sketch without retries, timers, messages, codec or telemetry",
    async migrate() {
      await (await get()).migrate();
    },
    async startSingly(count, callers) {
      await (await get()).starts(count, callers);
    },
    async startInBulk(count) {
      await (await get()).startsInBulk(count, 1_000);
    },
    async work() {
      await (await get()).drain(500);
    },
    async hasPlainJobs() {
      const { rows } = await pool.query<{ found: boolean }>(
        "select exists (select from sketch_ready) or exists (select from sketch_lease) as found",
      );
      return rows[0]?.found ?? false;
    },
    async fiveSteps(count, inFlight) {
      await (await get()).fiveSteps(count, inFlight);
    },
    /** Begins: a durable insert, and a notification of it. Results: start, claim and end, a commit each. */
    async latencies(count) {
      return await (await get()).latencies(count);
    },
    async sequentialSteps(count) {
      await (await get()).inserts(count);
    },
    async close() {
      await (await sketch)?.close();
      await pool.end();
    },
  };
};
