import { setTimeout as pause } from "node:timers/promises";
import { describe, expect } from "vitest";
import { expectOrder } from "./invariants.ts";
import { NotificationTrips } from "./notification-trips.ts";
import { outputsOf } from "./outputs-of.ts";
import { type Scene, test } from "./scene.ts";
import { spreadOf } from "./spread.ts";
import { meeting } from "./workflows.ts";

const pairs = 400;
const inFlight = 6;

describe("a signal that comes as the run lies down to wait for it", { timeout: 60_000 }, () => {
  test("wakes the run at once, every time", async ({ scene }) => {
    const { pawl, random } = scene;
    // Polls and sweeps come so rarely that whatever one of them finds stands out.
    const crew = scene.crew({ lease: "60s", pollInterval: "20s" });
    const workers = await Promise.all([crew.hire(), crew.hire(), crew.hire()]);
    const sent: Promise<void>[] = [];
    const send = async (runId: string): Promise<void> => {
      await pause(random.next() * 12);
      await pawl.signal(runId, "go", "now", { idempotencyKey: "once" });
    };
    const calls = new Map<string, number>();
    for (const worker of workers) {
      worker.onReport((report) => {
        if (report.kind === "aboutToWait") sent.push(send(report.runId));
        if (report.kind === "entered") calls.set(report.runId, (calls.get(report.runId) ?? 0) + 1);
      });
    }

    const notifications = scene.own(new NotificationTrips(scene.url));
    await notifications.start(scene.pool);
    let left = pairs;
    const meet = async (): Promise<void> => {
      while (left-- > 0) {
        const run = await pawl.start(meeting);
        expect(await outputsOf(scene, [run])).toEqual(["now"]);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, meet));
    await Promise.all(sent);

    await expectOrder(scene);
    const trips = spreadOf(await notifications.stop());
    const waits = spreadOf(await timesToResume(scene));
    // A run that parks lets go of its code, which is called again when it wakes.
    const slept = [...calls.values()].filter((times) => times > 1).length;
    console.info(
      `close pairs: seed ${scene.seed}, ${slept} of ${pairs} had parked; ms to resume ${JSON.stringify(waits)},`,
      `of a notification ${JSON.stringify(trips)}`,
    );
    expect(slept).toBeGreaterThan(pairs / 10);
    expect(slept).toBeLessThan(pairs * 0.95);
    expect(waits.p99).toBeLessThan(250 + 5 * trips.p99);
    expect(waits.max).toBeLessThan(900 + 5 * trips.max);
  });
});

/** From when both the signal was sent and the wait was asked for, until the run took it. */
async function timesToResume({ pool, schema }: Scene): Promise<readonly number[]> {
  const { rows } = await pool.query<{ ms: number }>(
    `select (extract(epoch from taken.at - greatest(m.sent_at, asked.at)) * 1000)::float8 as ms
       from ${schema}.inbox m
       join ${schema}.event taken on taken.run_id = m.run_id and taken.kind = 'signal_received'
       join ${schema}.event asked on asked.run_id = m.run_id and asked.name = 'arrive'`,
  );
  return rows.map(({ ms }) => ms);
}
